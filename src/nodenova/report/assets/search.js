"use strict";
// Finding nodes by name, and the card of one node.

function neighbors(i) { return story.targets ? story.targets.subarray(story.start[i], story.start[i + 1]) : []; }

function classChip(i) { return element("span", {class: "chip"}, glyph(look(i)), className(i)); }

function nodeButton(i, far = false) {
  return element("button", {class: "node", title: className(classOf(i)), onclick: () => far ? showNode(i) : openNode(i, true)}, glyph(look(classOf(i))), story.names[i]);
}

const nodeExtras = [];  // more content of the card: functions from a node number to elements

let opened = -1;

function openNode(i, move = false) {
  opened = i;
  map.select(i);
  if (move) map.center(i);
  const card = $("card"), others = weighed(i).slice(1, 3), rows = [];
  const row = (title, ...content) => rows.push(element("dt", {}, title), element("dd", {}, ...content));
  row("Class", classChip(classOf(i)), sure(i, " "));
  for (const [other, p] of others) if (p >= 0.01) row("or", classChip(other), ` ${percent(p)}`);
  if (story.given && story.given[i] !== NO_CLASS && !now.unlabelled.has(i)) row("Label", classChip(story.given[i]));
  if (story.true && story.true[i] !== NO_CLASS) row("True class", story.trueNames[story.true[i]]);
  card.replaceChildren(
    element("div", {class: "head"}, element("h3", {}, story.names[i]), element("button", {"aria-label": "Close", class: "small", onclick: closeNode}, "×")),
    element("dl", {}, ...rows), ...nodeExtras.flatMap(extra => extra(i)), ...(story.targets ? around(i) : []));
  card.hidden = false;
}

// How many neighbors a node has, of which classes, and the surest of them.
function around(i) {
  const classes = [0, 1, 2].filter(k => story.near[3 * i + k] !== NO_CLASS)
    .map(k => `${story.nearCount[3 * i + k].toLocaleString("en")} in ${className(now.into[story.near[3 * i + k]])}`);
  const degree = story.degree[i], listed = [...neighbors(i)];
  const head = degree ? `${degree.toLocaleString("en")} ${degree === 1 ? "neighbor" : "neighbors"}: ${classes.join(", ")}` : "No neighbors";
  return [element("p", {class: "quiet"}, head), element("p", {class: "chips"}, ...listed.map(nodeButton))];
}

function closeNode() { opened = -1; $("card").hidden = true; map.select(-1); }

function showNode(i) {
  openNode(i, true);
  $("map-section").scrollIntoView({block: "start"});
}

(() => {
  const input = $("search"), list = $("found"), lower = [];
  const MOST = 12;
  let hits = [], at = -1;

  // Names that are the text, then those that begin with it, then those that have it anywhere.
  function find(text) {
    const wanted = text.trim().toLowerCase(), ranks = [[], [], []];
    if (!wanted) return [];
    if (!lower.length) for (const name of story.names) lower.push(name.toLowerCase());
    for (let i = 0; i < count && ranks[0].length + ranks[1].length < MOST; i++) {
      const where = lower[i].indexOf(wanted);
      if (where >= 0) { const r = where > 0 ? 2 : lower[i] === wanted ? 0 : 1; if (ranks[r].length < MOST) ranks[r].push(i); }
    }
    return ranks.flat().slice(0, MOST);
  }
  function show() {
    list.replaceChildren(...hits.map((i, k) => element("li",
      {role: "option", id: `found-${k}`, "aria-selected": k === at, onpointerdown: e => { e.preventDefault(); take(k); }},
      glyph(look(classOf(i))), element("span", {}, story.names[i]), element("span", {class: "quiet"}, className(classOf(i))))));
    if (!hits.length && input.value.trim()) list.replaceChildren(element("li", {class: "quiet"}, "No node name contains this."));
    list.hidden = !input.value.trim();
    input.setAttribute("aria-expanded", String(!list.hidden));
    if (at >= 0) { input.setAttribute("aria-activedescendant", `found-${at}`); list.children[at].scrollIntoView({block: "nearest"}); }
    else input.removeAttribute("aria-activedescendant");
  }
  function hide() { list.hidden = true; input.setAttribute("aria-expanded", "false"); }
  function take(k) { input.value = story.names[hits[k]]; hide(); openNode(hits[k], true); }

  input.addEventListener("input", () => { hits = find(input.value); at = hits.length ? 0 : -1; show(); });
  input.addEventListener("focus", () => { if (input.value.trim() && hits.length) show(); });
  input.addEventListener("blur", hide);
  input.addEventListener("keydown", e => {
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      if (!hits.length) return;
      at = (at + (e.key === "ArrowDown" ? 1 : hits.length - 1)) % hits.length; show();
    } else if (e.key === "Enter") { if (at >= 0) take(at); }
    else if (e.key === "Escape") { input.value = ""; hits = []; hide(); }
    else return;
    e.preventDefault();
  });
})();

for (const button of document.querySelectorAll("[data-node]"))
  button.addEventListener("click", () => showNode(Number(button.dataset.node)));
watchers.push(() => { if (opened >= 0) openNode(opened); });
