"use strict";
// Nodes that are selected on the map with a lasso, a box or the keyboard, and what can be done with them.

let chosenNodes = [];  // their numbers, ascending
const selectionActions = [];  // more buttons: functions from the selected nodes to elements
const noun = (n, one) => `${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;

// Select nodes: "new" replaces the selection, "add" and "remove" change it.
function selecting(nodes, how = "new") {
  const before = new Set(chosenNodes);
  if (how === "add") for (const i of nodes) before.add(i);
  else if (how === "remove") for (const i of nodes) before.delete(i);
  chosenNodes = how === "new" ? [...nodes].sort((a, b) => a - b) : [...before].sort((a, b) => a - b);
  if (!chosenNodes.length) map.choose(null);
  else { const some = new Uint8Array(count); for (const i of chosenNodes) some[i] = 1; map.choose(some); }
  showSelection();
}

function showSelection() {
  const panel = $("chosen"), n = chosenNodes.length, offer = !n && map.lit !== null;
  panel.hidden = !n && !offer;
  if (panel.hidden) return panel.replaceChildren();
  if (offer) {  // all nodes of what is lit in the legend, also at another number of classes
    const lit = () => [...Array(count).keys()].filter(i => map.groupOf(i) === map.lit);
    return panel.replaceChildren(element("button", {class: "small", id: "take-lit", onclick: () => { const nodes = lit(); map.lit = null; showLegend(); selecting(nodes); }}, "Select its nodes"));
  }
  const sizes = new Map();
  for (const i of chosenNodes) sizes.set(classOf(i), (sizes.get(classOf(i)) || 0) + 1);
  const parts = [...sizes].sort((a, b) => b[1] - a[1]), listed = parts.slice(0, 4).map(([g, size]) => `${size.toLocaleString("en")} in ${className(g)}`);
  if (parts.length > 4) listed.push(`${parts.length - 4} more classes`);
  panel.replaceChildren(element("h3", {}, `${noun(n, "node")} selected`), element("p", {class: "quiet"}, listed.join(", ")),
    element("div", {class: "actions"}, ...selectionActions.flatMap(action => action(chosenNodes)),
      element("button", {class: "small", id: "export", onclick: exportSelection}, "Export CSV"),
      element("button", {class: "small", id: "unselect", onclick: () => { selecting([]); $("map").focus({preventScroll: true}); }}, "Clear")));
}

// The selection as a table; a cell with a comma, a quote or a line break is quoted. A shortened name identifies no node.
function exportSelection() {
  const short = new Set(story.shortened), listed = chosenNodes.filter(i => !short.has(i)), without = chosenNodes.length - listed.length;
  const cell = value => /[",\n\r]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value);
  const head = ["node", "class", "name", ...(story.p ? ["probability"] : []), ...(story.given ? ["label"] : [])];
  const rows = listed.map(i => [story.names[i], classOf(i) < 0 ? "" : story.classes[classOf(i)].id, className(classOf(i)),
    ...(story.p ? [probability(i).toFixed(4)] : []), ...(story.given ? [story.given[i] === NO_CLASS ? "" : className(story.given[i])] : [])]);
  download("selection.csv", "text/csv", [head, ...rows].map(row => row.map(cell).join(",") + "\r\n").join(""));
  if (without) $("chosen").append(element("p", {class: "quiet"}, `${noun(without, "node")} with a name that is cut on this page ${without === 1 ? "is" : "are"} not in the table.`));
}

function download(name, type, content) {
  const link = element("a", {href: URL.createObjectURL(new Blob([content], {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

watchers.push(showSelection);
