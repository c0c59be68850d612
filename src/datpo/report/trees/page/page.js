// The page of one tree: what is chosen, and what chooses it.

const svg = document.getElementById("tree");
let place = null;
let drawnIn = null; // width and height of the room for the tree
let chosen = 0;
const ADVANTAGES = BLOCKS.map((block) => block.advantage ?? 0);
const sizes = ADVANTAGES.map(Math.abs);
const strongest = Math.max(...sizes);

function header() {
  const right = BRANCHES.filter((branch) => rightness(branch.reward) === "right").length;
  const tokens = BRANCHES.reduce((sum, branch) => sum + branch.stop - branch.start, 0);
  document.title = `Rollout tree ${DATA.tree}`;
  fill("title", `Tree ${DATA.tree}, problem `, make("bdi", {}, visible(DATA.problem.id)));
  const forks = CHILDREN.filter((children) => children.length).length;
  const told = [
    `${right} of ${count(BRANCHES.length, "leaf", "leaves")} right`, `V(root) ${DATA.root.toFixed(3)}`,
    count(forks, "fork"), count(tokens, "token"), `step ${DATA.step}`, `credit by ${DATA.method}`,
  ];
  fill("numbers", told.join("; "), ...jumps());
  fill("problem", visible(DATA.problem.problem));
  fill("answer", visible(DATA.problem.answer));
  for (const way of ["previous", "next"]) {
    const link = document.getElementById(way);
    link.hidden = DATA[way] === null;
    if (DATA[way]) link.href = DATA[way];
  }
}

/** Buttons to the blocks with the highest and the lowest advantage. */
function jumps() {
  const ends = [Math.max, Math.min].map((best) => ADVANTAGES.indexOf(best(...ADVANTAGES)));
  const found = [...new Set(ends)].filter((i) => ADVANTAGES[i]);
  const buttons = found.flatMap((i) => [blockButton(i, `block ${i} (${credit(i)})`, false, choose), " "]);
  return found.length ? ["; strongest credit: ", ...buttons] : [];
}

function legend() {
  const strip = draw("svg", { width: 26, height: 14, "aria-hidden": "true" },
    draw("rect", { x: 0, y: 1, width: 12, height: 4, fill: "#1f5fbf" }),
    draw("rect", { x: 14, y: 9, width: 12, height: 4, fill: "#c2410c" }),
    draw("rect", { x: 0, y: 5, width: 26, height: 4, fill: "#ddd", stroke: "#777", "stroke-width": 0.5 }));
  const curve = svg.dataset.curve === "entropy"
    ? (UNSUREST ? `curve: entropy of each token, up to ${UNSUREST.toFixed(2)} nats` : "no entropy in the file")
    : make("span", {}, strip, `advantage: above the bar > 0, beneath it < 0, up to ${strongest.toFixed(2)}`);
  const cut = draw("svg", { width: 6, height: 13, "aria-hidden": "true" });
  cut.append(draw("path", { class: "cut", d: "M3 1V12" }));
  fill("legend", ...valueLegend(RANGE), make("span", {}, cut, "cut off at the limit"), curve);
}

function redraw() {
  const canvas = document.getElementById("canvas");
  svg.dataset.curve = document.querySelector("[name=curve]:checked").value;
  legend();
  // Beside the block the tree gets the height there is; above it, most of a window.
  place = placed(canvas.clientWidth, canvas.clientHeight || 0.7 * innerHeight);
  drawTree(svg, place, svg.dataset.curve);
  showChosen(svg, place, chosen);
  drawnIn = [canvas.clientWidth, canvas.clientHeight];
}

function show(i) {
  chosen = i;
  showChosen(svg, place, i);
  showBlock(i, choose);
}

/** Show a block, bring it into sight, and let the address name it. */
function choose(i) {
  show(i);
  document.getElementById(`b${i}`).scrollIntoView({ block: "nearest" });
  try {
    history.replaceState(null, "", `#b${i}`);
  } catch {
    // A browser may forbid it: inside a Snakemake report, or after too many in a short time.
  }
}

function blockAt(event) {
  const group = event.target.closest(".block");
  return group ? Number(group.dataset.block) : null;
}

svg.addEventListener("click", (event) => {
  const block = blockAt(event);
  if (block !== null) choose(block);
});
svg.addEventListener("pointerover", (event) => showTrail(svg, place, blockAt(event)));
svg.addEventListener("pointerleave", () => showTrail(svg, place, null));
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.target !== document.body && !svg.contains(event.target)) return; // a button or a scrolled text
  const block = stepTo(event.key, chosen);
  if (block === null) return;
  event.preventDefault();
  choose(block);
});
document.getElementById("text").addEventListener("pointerover", (event) => {
  const element = event.target.closest(".token");
  if (element) fill("readout", tokenNumbers(BRANCHES[BLOCKS[chosen].branch], Number(element.dataset.at)));
});
for (const input of document.querySelectorAll("[name=curve]")) input.addEventListener("change", redraw);
new ResizeObserver(([{ target }]) => {
  if (target.clientWidth !== drawnIn[0] || target.clientHeight !== drawnIn[1]) redraw();
}).observe(document.getElementById("canvas"));

header();
redraw();
const asked = /^#b(\d+)$/.exec(location.hash);
show(asked && Number(asked[1]) < BLOCKS.length ? Number(asked[1]) : sizes.indexOf(strongest));
