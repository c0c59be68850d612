// The index: a stamp of every tree.

const RANGE = valueRange(DATA.trees.flatMap((tree) => tree.branches));

/** Draw a tree on the canvas of its card. */
function drawStamp(canvas, tree) {
  const pen = canvas.getContext("2d");
  const longest = Math.max(...tree.branches.map((branch) => branch.stop));
  const high = Math.min(24, 214 / tree.branches.length);
  const x = (at) => 4 + (440 * at) / longest;
  const y = (branch) => 3 + (branch.row + 0.5) * high;
  pen.strokeStyle = "#8a8a8a";
  for (const branch of tree.branches) {
    const from = branch.parent === null ? 3 : y(tree.branches[branch.parent]);
    pen.beginPath();
    pen.moveTo(x(branch.start), from);
    pen.lineTo(x(branch.start), y(branch));
    pen.stroke();
  }
  for (const block of tree.blocks) {
    const branch = tree.branches[block.branch];
    const box = [x(block.start), y(branch) - 0.36 * high, x(block.stop) - x(block.start), 0.72 * high];
    pen.fillStyle = valueColour(block.value_end, RANGE);
    pen.fillRect(...box);
    pen.lineWidth = 0.5;
    if (high > 8) pen.strokeRect(...box); // outlines of thin bars would hide their colour
  }
  for (const branch of tree.branches) {
    if (rightness(branch.reward) !== "right") continue;
    pen.fillStyle = "#14532d";
    pen.beginPath();
    pen.arc(x(branch.stop) + 8, y(branch), Math.max(2.5, Math.min(5, 0.4 * high)), 0, 7);
    pen.fill();
  }
}

// Stamps are drawn when they come into sight: a file may hold thousands.
const insight = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    insight.unobserve(target);
    drawStamp(target, DATA.trees[Number(target.dataset.tree)]);
  }
});

function stamp(index) {
  const canvas = make("canvas", { width: 460, height: 220, role: "img" });
  canvas.dataset.tree = index;
  insight.observe(canvas);
  return canvas;
}

function card(tree, index) {
  const right = tree.branches.filter((branch) => rightness(branch.reward) === "right").length;
  const forks = new Set(tree.branches.filter((b) => b.parent !== null).map((b) => `${b.parent} ${b.start}`)).size;
  const tokens = tree.branches.reduce((sum, branch) => sum + branch.stop - branch.start, 0);
  const told = [
    `step ${tree.step}`, `V(root) ${tree.root.toFixed(2)}`,
    `${right} of ${count(tree.branches.length, "leaf", "leaves")} right`, count(forks, "fork"), count(tokens, "token"),
  ];
  const element = make("a", { className: "card", href: tree.page },
    make("strong", { className: "name" }, make("bdi", {}, visible(tree.problem.id))),
    make("div", { className: "hint" }, told.join("; ")),
    make("span", { className: "said", dir: "auto" }, visible(tree.problem.problem).slice(0, 300)),
    stamp(index));
  element.dataset.mixed = new Set(tree.branches.map((branch) => branch.reward)).size > 1;
  return element;
}

const CARDS = DATA.trees.map(card);
const mixed = document.getElementById("mixed");
const choose = () => fill("trees", ...CARDS.filter((element) => !mixed.checked || element.dataset.mixed === "true"));
mixed.addEventListener("change", choose);
const many = CARDS.filter((element) => element.dataset.mixed === "true").length;
fill("numbers", `${count(DATA.trees.length, "tree")} of `, make("bdi", {}, visible(DATA.file)),
  `, ${many} with different rewards; credit by ${DATA.method}. A dot is a right leaf.`);
fill("legend", valueLegend(RANGE)[0]);
choose();
