"use strict";
// How a class looks: color and shape. Discovered classes are diamonds in strong colors, known ones circles in light
// colors; where colors run out, they come back hollow. tests/report/test_colors.py measures how far the colors of a list
// are from each other, also for readers who see no red or no green (CIEDE2000, chosen by search to be far). The first
// four strong colors are also far from the first five light ones.

const STRONG = {
  day: ["#ff782d", "#1e3c96", "#87003c", "#00a5ff", "#872d00", "#e13c4b", "#b469a5", "#1ea587"],
  night: ["#4b78f0", "#a53c87", "#00c3ff", "#1e691e", "#d2870f", "#f0e15a", "#0ff0d2", "#ff8796"],
};
const LIGHT = {
  day: ["#e17896", "#1ee1f0", "#2d8769", "#786987", "#87692d", "#f0c3a5", "#a5a55a", "#0f96d2"],
  night: ["#ffe1ff", "#0fc3b4", "#b47878", "#d2a569", "#ffffa5", "#8796e1", "#5a782d", "#007896"],
};
const SURENESS = [{from: 0.9, name: "90% or more", color: "#9aa3ad"}, {from: story.unsureBelow, color: "#ee9933"}, {from: 0, color: "#cc3311"}];
SURENESS[1].name = `${percent(story.unsureBelow)} to 90%`;
SURENESS[2].name = `less than ${percent(story.unsureBelow)}`;

const darkQuery = matchMedia("(prefers-color-scheme: dark)");
let printing = false;
const isDark = () => darkQuery.matches && !printing;

// Colors go by id, which is a class's for ever: no decision about another class changes them.
const firstNew = story.firstNew ?? story.classes.filter(c => !c.isNew).length;
const placeInPalette = c => c.isNew ? Math.max(c.id - firstNew, 0) : c.id;

function look(i) {
  if (i < 0 || i === NO_CLASS) return {color: "#8a8f98", shape: "cross", hollow: false};
  return lookAt(story.classes[i].isNew, placeInPalette(story.classes[i]));
}
function lookAt(isNew, k) {
  const colors = (isNew ? STRONG : LIGHT)[isDark() ? "night" : "day"];
  return {color: colors[k % colors.length], shape: isNew ? "diamond" : "circle", hollow: Math.floor(k / colors.length) % 2 === 1};
}

// Where true classes are known: the look of the class that stands for one, or, when there is none, a look of its own.
function trueLook(t) {
  if (t === NO_CLASS) return look(-1);
  return story.trueAs[t] >= 0 ? look(story.trueAs[t]) : {color: STRONG.day[(story.classes.length + t) % STRONG.day.length], shape: "cross", hollow: false};
}

function outline(shape, x, y, r) {
  const path = new Path2D();
  if (shape === "circle") path.arc(x, y, r, 0, 2 * Math.PI);
  else if (shape === "diamond") {
    const d = r * 1.3;
    path.moveTo(x, y - d); path.lineTo(x + d, y); path.lineTo(x, y + d); path.lineTo(x - d, y); path.closePath();
  } else { const d = r * 0.9; path.moveTo(x - d, y - d); path.lineTo(x + d, y + d); path.moveTo(x + d, y - d); path.lineTo(x - d, y + d); }
  return path;
}

function paint(context, {color, shape, hollow}, x, y, r) {
  const path = outline(shape, x, y, r);
  if (shape === "cross" || hollow) {
    context.strokeStyle = color; context.lineWidth = Math.max(1, r * 0.45); context.stroke(path);
  } else { context.fillStyle = color; context.fill(path); }
}

// A small canvas with one drawn point, to be stamped many times.
function stamp(appearance, r, scale) {
  const side = Math.ceil(2 * (1.4 * r + 1) * scale), canvas = element("canvas", {width: side, height: side});
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  paint(context, appearance, side / scale / 2, side / scale / 2, r);
  return canvas;
}

// The same as a picture in the text.
function glyph(appearance) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), {color, shape, hollow} = appearance;
  svg.setAttribute("viewBox", "0 0 16 16"); svg.setAttribute("class", "glyph"); svg.setAttribute("aria-hidden", "true");
  const mark = document.createElementNS(svg.namespaceURI, "path");
  mark.setAttribute("d", {circle: "M2.5 8a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0-11 0", diamond: "M8 1L15 8L8 15L1 8Z", cross: "M3 3L13 13M13 3L3 13"}[shape]);
  const open = hollow || shape === "cross";
  mark.setAttribute("fill", open ? "none" : color);
  if (open) { mark.setAttribute("stroke", color); mark.setAttribute("stroke-width", "2.4"); }
  svg.append(mark);
  return svg;
}
