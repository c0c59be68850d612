// The tree: x is the position in the response, a row a branch, a bar a block.

const BRANCHES = DATA.branches;
const BLOCKS = DATA.blocks;
const RANGE = valueRange(BRANCHES);
const LONGEST = Math.max(...BRANCHES.map((branch) => branch.stop));
const STRONGEST = Math.max(1e-9, ...BLOCKS.map((block) => Math.abs(block.advantage ?? 0)));
const UNSUREST = BRANCHES.reduce((most, branch) => (branch.entropy ?? []).reduce((a, b) => Math.max(a, b), most), 0);
const CHILDREN = BLOCKS.map(() => []);
const FIRST = []; // the blocks that start at the prompt
BLOCKS.forEach((block, i) => (block.parent === null ? FIRST : CHILDREN[block.parent]).push(i));
const ROWS = BRANCHES.map(() => null); // row -> its branch
BRANCHES.forEach((branch, i) => (ROWS[branch.row] = i));
const OF_BRANCH = BRANCHES.map((_, b) => BLOCKS.flatMap((block, i) => (block.branch === b ? [i] : [])));
const LEFT = 34, RIGHT = 96, TOP = 18;

/** What each token of a block says. */
function wordsOf(i) {
  const block = BLOCKS[i], branch = BRANCHES[block.branch];
  return branch.words.slice(block.start - branch.start, block.stop - branch.start).map((word) => DATA.words[word]);
}

/** The blocks from the prompt to a block. */
function pathTo(block) {
  const path = [];
  for (let i = block; i !== null; i = BLOCKS[i].parent) path.unshift(i);
  return path;
}

/** A block and the others that start where it starts. */
function siblingsOf(block) {
  return BLOCKS[block].parent === null ? FIRST : CHILDREN[BLOCKS[block].parent];
}

/** Where things stand in a drawing so many pixels wide, and high if rows can be made to fit. */
function placed(width, height) {
  const row = Math.max(12, Math.min(48, (height - TOP - 4) / BRANCHES.length));
  const wide = Math.max(50, width - LEFT - RIGHT);
  return {
    width, row,
    height: TOP + row * BRANCHES.length + 4,
    bar: Math.max(4, 0.34 * row),
    x: (at) => LEFT + (wide * at) / LONGEST,
    y: (branch) => TOP + (BRANCHES[branch].row + 0.5) * row,
  };
}

function drawTree(svg, place, curve) {
  svg.setAttribute("viewBox", `0 0 ${place.width} ${place.height}`);
  svg.setAttribute("height", place.height);
  svg.replaceChildren(
    ...axis(place), ...BRANCHES.map((_, branch) => forkLine(place, branch)),
    draw("path", { class: "trail", id: "trail" }),
    ...BLOCKS.map((_, block) => drawBlock(place, block, curve)),
    ...forkNodes(place), draw("rect", { class: "chosen", id: "chosen", rx: 2 }));
}

function axis(place) {
  const rough = LONGEST / 8;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].find((n) => n * power >= rough) * power);
  const marks = [];
  for (let at = 0; at <= LONGEST; at += step) {
    marks.push(draw("line", { class: "grid", x1: place.x(at), x2: place.x(at), y1: TOP - 4, y2: place.height }));
    marks.push(draw("text", { x: place.x(at), y: TOP - 7, "text-anchor": "middle" }, at === 0 ? "token 0" : `${at}`));
  }
  return marks;
}

/** The line from where a branch was forked down to it. */
function forkLine(place, branch) {
  const { parent, start } = BRANCHES[branch];
  const from = parent === null ? TOP + 0.5 * place.row : place.y(parent);
  const x = place.x(start);
  return draw("path", { class: "fork", d: `M${parent === null ? x - 10 : x} ${from}V${place.y(branch)}H${x}` });
}

function drawBlock(place, i, curve) {
  const block = BLOCKS[i];
  const x = place.x(block.start), y = place.y(block.branch), width = place.x(block.stop) - x;
  const told = { role: "treeitem", "aria-label": spoken(i), "aria-level": pathTo(i).length };
  const group = draw("g", { class: "block", id: `b${i}`, ...told });
  const reach = width + (block.terminal ? RIGHT - 4 : 0);
  group.append(draw("rect", { class: "hit", x, y: y - place.row / 2, width: reach, height: place.row }));
  const colour = valueColour(block.value_end, RANGE);
  group.append(draw("rect", { class: "bar", x, y: y - place.bar / 2, width, height: place.bar, fill: colour }));
  const along = curve === "entropy" ? entropyCurve(place, block) : advantageStrip(place, block);
  if (along) group.append(along);
  if (block.terminal) group.append(...leaf(place, block));
  group.dataset.block = i;
  return group;
}

/** Above the bar what is reinforced, beneath it what is made less likely; its area is advantage times tokens. */
function advantageStrip(place, block) {
  const share = Math.abs(block.advantage ?? 0) / STRONGEST;
  if (!share) return null;
  const height = Math.max(1, share * ((place.row - place.bar) / 2 - 0.5));
  const y = place.y(block.branch) + (block.advantage > 0 ? -place.bar / 2 - height : place.bar / 2);
  const x = place.x(block.start);
  const box = { x, y, width: place.x(block.stop) - x, height, "fill-opacity": 0.45 + 0.55 * share };
  return draw("rect", { class: block.advantage > 0 ? "plus" : "minus", ...box });
}

/** The entropy of each token, as a step curve that stands on the bar. */
function entropyCurve(place, block) {
  const branch = BRANCHES[block.branch];
  if (!branch.entropy || !UNSUREST) return null;
  const ground = place.y(block.branch) - place.bar / 2;
  const scale = ((place.row - place.bar) / 2 + place.bar * 0.2) / UNSUREST;
  let line = `M${place.x(block.start)} ${ground}`;
  for (let at = block.start; at < block.stop; at++) {
    line += `V${(ground - scale * branch.entropy[at - branch.start]).toFixed(1)}H${place.x(at + 1).toFixed(1)}`;
  }
  return draw("path", { class: "curve", d: `${line}V${ground}Z` });
}

function leaf(place, block) {
  const branch = BRANCHES[block.branch];
  const x = place.x(block.stop), y = place.y(block.branch), size = Math.min(5.5, 0.36 * place.row);
  const marks = leafMark(branch.reward, x + 5 + size, y, size);
  if (branch.finish === "length") marks.push(draw("path", { class: "cut", d: `M${x + 2} ${y - size}V${y + size}` }));
  const reward = rightness(branch.reward) === "partly" ? `${branch.reward} ` : "";
  const words = reward + (branch.verdict ?? "");
  const text = draw("text", { x: x + 10 + 2 * size, y: y + 3.5 }, visible(words).slice(0, 14));
  return [...marks, text];
}

/** Fork points, in the colour of their value; the value in numbers where there is room. */
function forkNodes(place) {
  return BLOCKS.flatMap((block, i) => {
    if (!CHILDREN[i].length) return [];
    const x = place.x(block.stop), y = place.y(block.branch);
    const r = Math.min(5, 0.26 * place.row + 0.8);
    const node = draw("circle", { class: "node", cx: x, cy: y, r, fill: valueColour(block.value_end, RANGE) });
    const below = { class: "node-value", x: x + 5, y: y + place.row / 2 - 1 };
    return place.row < 30 ? [node] : [node, draw("text", below, block.value_end.toFixed(2))];
  });
}

/** A block in words. */
function spoken(i) {
  const block = BLOCKS[i], branch = BRANCHES[block.branch];
  const credit = block.advantage === null ? "not trained" : `advantage ${signed(block.advantage)}`;
  const end = block.terminal ? `leaf, ${rightness(branch.reward)}` : `fork into ${CHILDREN[i].length}`;
  const values = `value ${block.value_start.toFixed(2)} to ${block.value_end.toFixed(2)}`;
  return `Block ${i}, branch ${block.branch}, tokens ${block.start} to ${block.stop}, ${values}, ${credit}, ${end}`;
}

/** Mark the path from the prompt to a block, or none. */
function showTrail(svg, place, block) {
  const path = block === null ? [] : pathTo(block);
  svg.classList.toggle("hovering", block !== null);
  for (const shown of svg.querySelectorAll(".block.on")) shown.classList.remove("on");
  for (const i of path) document.getElementById(`b${i}`).classList.add("on");
  const lines = path.map((i) => `V${place.y(BLOCKS[i].branch)}H${place.x(BLOCKS[i].stop)}`);
  const trail = path.length ? `M${LEFT - 10} ${TOP + 0.5 * place.row}${lines.join("")}` : "";
  document.getElementById("trail").setAttribute("d", trail);
}

function showChosen(svg, place, i) {
  const block = BLOCKS[i], x = place.x(block.start);
  const y = place.y(block.branch) - place.row / 2;
  const box = { x: x - 1, y, width: place.x(block.stop) - x + 2, height: place.row };
  for (const [key, value] of Object.entries(box)) document.getElementById("chosen").setAttribute(key, value);
  svg.setAttribute("aria-activedescendant", `b${i}`);
}

/** The block that a key leads to. */
function stepTo(key, i) {
  const block = BLOCKS[i];
  const own = OF_BRANCH[block.branch];
  const group = siblingsOf(i);
  if (key === "ArrowRight") return CHILDREN[i][0] ?? i;
  if (key === "ArrowLeft") return block.parent ?? i;
  if (key === "s") return group[(group.indexOf(i) + 1) % group.length];
  if (key === "Home") return pathTo(i)[0];
  if (key === "End") return own[own.length - 1];
  if (key !== "ArrowUp" && key !== "ArrowDown") return null;
  const branch = ROWS[BRANCHES[block.branch].row + (key === "ArrowUp" ? -1 : 1)];
  if (branch === undefined) return i;
  const middle = (block.start + block.stop) / 2;
  const away = (other) => Math.max(0, BLOCKS[other].start - middle, middle - BLOCKS[other].stop);
  return OF_BRANCH[branch].reduce((best, other) => (away(other) < away(best) ? other : best));
}
