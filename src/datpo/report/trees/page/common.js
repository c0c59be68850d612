"use strict";
// What all pages share. Texts of models and data sets become text nodes, never markup.

const DATA = JSON.parse(document.getElementById("data").textContent);
const RAMP = [[255, 240, 190], [150, 196, 140], [20, 83, 45]]; // from light to dark: it reads in grey

/** An HTML element with properties and children; a string among the children becomes a text node. */
function make(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

/** An SVG element with attributes and children. */
function draw(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function fill(id, ...children) {
  document.getElementById(id).replaceChildren(...children);
}

/** The range of values in trees: 0 to 1, or wider if a reward lies outside. */
function valueRange(branches) {
  return branches.reduce(([low, high], { reward }) => [Math.min(low, reward), Math.max(high, reward)], [0, 1]);
}

/** The colour of a value: light is low, dark is high. */
function valueColour(value, [low, high]) {
  const place = Math.max(0, Math.min(1, (value - low) / (high - low))) * (RAMP.length - 1);
  const left = Math.min(RAMP.length - 2, Math.floor(place));
  const mixed = RAMP[left].map((from, i) => Math.round(from + (RAMP[left + 1][i] - from) * (place - left)));
  return `rgb(${mixed.join(",")})`;
}

/** How a reward is marked: the highest and more is right, 0 and less is wrong. */
function rightness(reward) {
  return reward >= 1 ? "right" : reward <= 0 ? "wrong" : "partly";
}

function leafMark(reward, x, y, size) {
  const kind = rightness(reward);
  if (kind === "wrong") {
    const far = 0.7 * size;
    const strokes = `M${x - far} ${y - far}l${2 * far} ${2 * far}M${x - far} ${y + far}l${2 * far} ${-2 * far}`;
    return [draw("path", { class: "mark wrong", d: strokes })];
  }
  const disc = draw("circle", { class: `mark ${kind}`, cx: x, cy: y, r: size });
  const stroke = `M${x - size * 0.5} ${y}l${size * 0.4} ${size * 0.45}l${size * 0.65} ${-size * 0.9}`;
  const tick = draw("path", { class: "tick", d: stroke });
  return kind === "right" ? [disc, tick] : [disc];
}

function signed(number, digits = 3) {
  return (number > 0 ? "+" : number < 0 ? "\u2212" : "") + Math.abs(number).toFixed(digits);
}

function count(number, one, many = one + "s") {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

// Characters that show nothing, or turn what follows them around; joiners, which make emoji and letters, are none.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A text in which hidden characters are spelt out. */
function visible(text) {
  const number = (c) => c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
  return text.replace(HIDDEN, (c) => `\u27e8U+${number(c)}\u27e9`);
}

/** The legend of values and leaves. */
function valueLegend(range) {
  const ramp = draw("svg", { width: 72, height: 12, "aria-hidden": "true" });
  for (let i = 0; i < 12; i++) {
    const value = range[0] + ((range[1] - range[0]) * i) / 11;
    ramp.append(draw("rect", { x: 6 * i, y: 1, width: 6.2, height: 10, fill: valueColour(value, range) }));
  }
  const leaves = [["right", 1], ["wrong", 0]].map(([name, reward]) =>
    make("span", {}, draw("svg", { width: 13, height: 13 }, ...leafMark(reward, 6.5, 6.5, 4.5)), `${name} leaf`));
  const title = "The mean reward that the method expects from the end of the block on; at a leaf, its reward";
  return [make("span", { title }, `V at a block\u2019s end ${range[0]}`, ramp, `${range[1]}`), ...leaves];
}
