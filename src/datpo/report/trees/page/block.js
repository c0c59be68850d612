// What is told of a block: only its own tokens become elements.

const HEAT = [255, 170, 60]; // of the most uncertain token of the tree; the text on it stays dark

function heat(entropy) {
  const share = UNSUREST ? Math.min(1, entropy / UNSUREST) : 0;
  return `rgb(${HEAT.map((full) => Math.round(255 + (full - 255) * share)).join(",")})`;
}

function showBlock(i, choose) {
  const block = BLOCKS[i];
  const button = (step) => blockButton(step, `${step} (${credit(step)})`, step === i, choose);
  fill("path", ...pathTo(i).map((step) => make("li", {}, button(step))));
  fill("name", `Block ${i}: tokens ${block.start} to ${block.stop} of branch ${block.branch}`);
  fill("facts", ...facts(i).flatMap(([name, ...told]) => [make("dt", {}, name), make("dd", {}, ...told)]));
  fill("credit", creditBars(block));
  showText(i);
  showRules(i);
  showSiblings(i, choose);
}

function credit(i) {
  return BLOCKS[i].advantage === null ? "not trained" : signed(BLOCKS[i].advantage, 2);
}

function blockButton(i, text, current, choose) {
  const button = make("button", { type: "button", onclick: () => choose(i) }, text);
  if (current) button.setAttribute("aria-current", "true");
  return button;
}

function facts(i) {
  const block = BLOCKS[i], branch = BRANCHES[block.branch];
  const right = block.leaves.filter((leaf) => rightness(BRANCHES[leaf].reward) === "right").length;
  const told = [
    ["Value", `V(start) ${block.value_start.toFixed(3)} \u2192 V(end) ${block.value_end.toFixed(3)}`],
    ["Length", count(block.stop - block.start, "token")],
    ["Leaves below", `${block.leaves.length}, ${right} of them right`],
  ];
  if (!block.terminal) return [...told, ["Ends in", `a fork into ${CHILDREN[i].length}, at token ${block.stop}`]];
  const cut = branch.finish === "length" ? " (cut off at the limit)" : "";
  return [
    ...told,
    ["Reward", `${branch.reward}`],
    ["Verdict", branch.verdict === null ? "not in the file" : make("bdi", {}, visible(branch.verdict))],
    ["Response", `${count(branch.stop, "token")}${cut}, ${branch.start} of them shared`],
  ];
}

/** Advantage = base + diversity bonus, as numbers and bars of one scale for the whole tree. */
function creditBars(block) {
  const box = make("div", { className: "credit" });
  if (block.advantage === null) {
    box.append(make("span", { className: "hint" }, "No advantage: the method trains no leaf below this block."));
    return box;
  }
  const bonus = block.advantage - block.base_advantage;
  const difference = Math.abs(block.base_advantage - (block.value_end - block.value_start)) < 1e-9;
  const rows = [
    [difference ? "base: V(end) \u2212 V(start)" : "base, by the method", block.base_advantage, ""],
    [`diversity bonus (diversity ${block.diversity.toFixed(3)})`, bonus, ""],
    ["advantage", block.advantage, "total"],
  ];
  for (const [name, value, kind] of rows) {
    const number = make("span", { className: `number ${kind}` }, signed(value));
    box.append(make("span", { className: kind }, name), number, bar(value));
  }
  const sources = {
    file: "Diversity is that of the file.",
    texts: "Diversity was computed from the file\u2019s texts (lexical).",
    absent: "The file holds neither diversity nor texts: diversity is taken as 0.",
    unread: "This method reads no diversity.",
  };
  const weights = `Pull ${block.pull.toFixed(3)}, push ${block.push.toFixed(3)} over the tree\u2019s trained units. `;
  box.append(make("span", { className: "hint" }, weights + sources[DATA.diversity]));
  return box;
}

function bar(value) {
  const width = Math.min(100, (100 * Math.abs(value)) / STRONGEST);
  return draw("svg", { viewBox: "-101 0 202 12", preserveAspectRatio: "none", "aria-hidden": "true" },
    draw("rect", { class: value > 0 ? "plus" : "minus", x: value > 0 ? 0 : -width, y: 2, width, height: 8 }),
    draw("line", { class: "zero", x1: 0, x2: 0, y1: 0, y2: 12, "vector-effect": "non-scaling-stroke" }));
}

function showText(i) {
  const block = BLOCKS[i], branch = BRANCHES[block.branch];
  const before = pathTo(i).slice(0, -1);
  const details = document.getElementById("before");
  details.hidden = !before.length;
  details.querySelector("summary").textContent = `${count(block.start, "token")} before it`;
  details.querySelector(".said").textContent = visible(before.flatMap(wordsOf).join(""));
  const notes = [branch.entropy ? `heat: entropy, 0 to ${UNSUREST.toFixed(2)} nats` : "no entropy in the file"];
  if (!branch.sentences) notes.push("no sentence borders in the file for this branch");
  else notes.push("a bar before a token: a sentence starts");
  fill("heat", `${notes.join("; ")}`);
  const sentences = new Set(branch.sentences ?? []);
  const rules = otherForks(branch);
  const parts = [];
  if (block.parent !== null) parts.push(make("span", { className: "chip taken" }, `forked at ${block.start}`));
  for (let at = block.start; at < block.stop; at++) {
    if (rules.has(at)) parts.push(ruleChip(rules.get(at)));
    parts.push(token(branch, at, sentences.has(at)));
  }
  if (!block.terminal) parts.push(make("span", { className: "chip taken" }, `fork into ${CHILDREN[i].length}`));
  fill("text", ...parts);
  fill("readout", "Point at a token for its numbers.");
}

/** Position -> the rules that would fork a base rollout there. */
function otherForks(branch) {
  const found = new Map();
  for (const { rule, at } of branch.rules ?? []) {
    for (const place of at ?? []) found.set(place, [...(found.get(place) ?? []), rule]);
  }
  return found;
}

/** A place where other rules would fork: the first one's name, and how many more. */
function ruleChip(rules) {
  const more = rules.length > 1 ? ` +${rules.length - 1}` : "";
  return make("span", { className: "chip", title: `would fork here: ${rules.join(", ")}` }, rules[0] + more);
}

function token(branch, at, sentence) {
  const text = DATA.words[branch.words[at - branch.start]];
  const shown = text === "" ? "\u00b7" : visible(text).replaceAll("\n", "\u23ce\n").replaceAll("\t", "\u2192\t");
  const element = make("span", { className: "token" }, shown);
  element.classList.toggle("sentence", sentence);
  element.classList.toggle("empty", text === "");
  if (branch.entropy) element.style.backgroundColor = heat(branch.entropy[at - branch.start]);
  element.dataset.at = at;
  return element;
}

function tokenNumbers(branch, at) {
  const own = at - branch.start;
  const numbers = [`token ${at}`, `id ${branch.tokens[own]}`];
  if (DATA.words[branch.words[own]] === "") numbers.push("no text of its own: an end token, or part of a character");
  if (branch.entropy) numbers.push(`entropy ${branch.entropy[own].toFixed(3)} nats`);
  if (branch.logprobs) numbers.push(`sampled with p = ${Math.exp(branch.logprobs[own]).toFixed(3)}`);
  return numbers.join(", ");
}

/** The base rollout above a block, the forks it got and those that other rules would have given it. */
function showRules(i) {
  const base = BLOCKS[pathTo(i)[0]].branch;
  const branch = BRANCHES[base];
  const taken = [...new Set(BRANCHES.filter((other) => other.parent === base).map((other) => other.start))];
  const often = taken.length ? `${count(taken.length, "fork")}, as many as it got` : "3 forks, as it got none";
  fill("rules-note", `base rollout ${base}: where each rule would fork it (${often}; random: one draw)`);
  const width = document.getElementById("rules").clientWidth || 400, left = 96, row = 16;
  const x = (at) => left + ((width - left - 8) * at) / branch.stop;
  const rows = [{ rule: "forked here", at: taken }, ...branch.rules];
  const high = 26 + row * rows.length;
  const told = { role: "img", "aria-label": ruleWords(rows) };
  const svg = draw("svg", { viewBox: `0 0 ${width} ${high}`, height: high, ...told });
  const here = BLOCKS[pathTo(i).findLast((step) => BLOCKS[step].branch === base)];
  const span = { x: x(here.start), width: x(here.stop) - x(here.start) };
  svg.append(draw("rect", { class: "here", y: 0, height: high, ...span }));
  if (branch.entropy && UNSUREST) {
    const y = (entropy) => (22 - (18 * entropy) / UNSUREST).toFixed(1);
    const steps = branch.entropy.map((entropy, at) => `V${y(entropy)}H${x(at + 1).toFixed(1)}`);
    svg.append(draw("path", { class: "curve", d: `M${left} 22${steps.join("")}V22Z` }));
  }
  svg.append(draw("text", { x: 0, y: 18, class: "soft" }, branch.entropy ? "entropy" : "no entropy"));
  const borders = branch.sentences ?? [];
  for (const at of borders.length < width / 6 ? borders : []) {
    svg.append(draw("line", { class: "border", x1: x(at), x2: x(at), y1: 2, y2: 25 }));
  }
  rows.forEach(({ rule, at, missing }, n) => {
    const y = 26 + row * n + row / 2;
    svg.append(draw("line", { class: "grid", x1: left, x2: width - 8, y1: y, y2: y }));
    svg.append(draw("text", { x: 0, y: y + 3.5 }, rule));
    const lacking = `reads the signal \u201c${missing}\u201d, which is not in the file`;
    if (missing) svg.append(draw("text", { x: left, y: y + 3.5, class: "soft" }, lacking));
    for (const place of at ?? []) {
      const mark = draw("path", { class: n ? "at" : "taken", d: `M${x(place)} ${y + 5}l-4 -9h8Z` });
      mark.append(draw("title", {}, `${rule}: ${place}`));
      svg.append(mark);
    }
  });
  fill("rules", svg);
}

function ruleWords(rows) {
  const told = ({ at, missing }) => (missing ? `needs ${missing}` : at.join(", ") || "none");
  return rows.map((row) => `${row.rule}: ${told(row)}`).join("; ");
}

function showSiblings(i, choose) {
  const group = siblingsOf(i);
  const names = BLOCKS[i].parent === null ? "Base rollouts" : `Siblings at token ${BLOCKS[i].start}`;
  const note = group.length === 1 ? "none" : "marked: where a text first differs from this block\u2019s";
  fill("siblings-name", `${names} `, make("span", { className: "hint" }, note));
  fill("siblings", ...(group.length === 1 ? [] : group.map((other) => sibling(i, other, group, choose))));
}

function sibling(i, other, group, choose) {
  const block = BLOCKS[other], branch = BRANCHES[block.branch];
  const numbers = [`V ${block.value_end.toFixed(2)}`, `div ${block.diversity.toFixed(2)}`];
  if (block.start > branch.start) numbers.unshift("continued");
  if (block.terminal) numbers.push(rightness(branch.reward));
  const others = other === i ? group.filter((one) => one !== i) : [i];
  const same = Math.min(...others.map((one) => sharedTokens(other, one)));
  const own = wordsOf(other);
  const shared = make("span", { className: "same" }, visible(own.slice(0, same).join("")));
  const text = make("div", { className: "said", dir: "auto" }, shared);
  if (same < own.length) {
    text.append(make("mark", {}, visible(own[same]) || "\u00b7"), visible(own.slice(same + 1).join("")));
  }
  return make("div", { className: other === i ? "sibling shown" : "sibling" },
    blockButton(other, `${other} (${credit(other)})`, other === i, choose), 
    make("div", { className: "hint" }, numbers.join(", ")), text);
}

/** How many tokens two blocks have in common at their start. */
function sharedTokens(one, other) {
  const [a, b] = [one, other].map((i) => {
    const block = BLOCKS[i], branch = BRANCHES[block.branch];
    return branch.tokens.slice(block.start - branch.start, block.stop - branch.start);
  });
  let same = 0;
  while (same < Math.min(a.length, b.length) && a[same] === b[same]) same++;
  return same;
}
