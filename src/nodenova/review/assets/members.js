"use strict";
// Members of each class: typical, random and least certain ones, with their texts.

const FEW = 5, MORE = 20, KINDS = ["typical", "random", "least certain"];

// An order without a pattern, the same every time.
const shuffled = i => { let h = Math.imul(i + 1, 0x9e3779b1); h ^= h >>> 15; h = Math.imul(h, 0x85ebca6b); return (h ^ h >>> 13) >>> 0; };

function membersOf(kind, i, all) {
  if (kind === "random") return all.sort((a, b) => shuffled(a) - shuffled(b));
  if (kind === "least certain") return all.sort((a, b) => probability(a) - probability(b) || a - b);
  const first = story.classes.flatMap((_, j) => now.into[j] === i ? story.typical[j] || [] : []).filter(node => classOf(node) === i);
  const seen = new Set(first);
  return [...first, ...all.sort((a, b) => probability(b) - probability(a) || a - b).filter(node => !seen.has(node))];
}

// Texts of a node: [column, text].
const textsOf = node => story.columns.map((column, k) => [column, story.texts[k][node]]).filter(([, text]) => text);

const shelves = [...document.querySelectorAll("[data-members]")].map(place => ({place, i: Number(place.dataset.members), kind: KINDS[0], many: FEW}));

function showMembers(shelf, byClass) {
  const {place, i} = shelf;
  const all = (byClass || groupedNodes()).get(i) || [];
  const listed = membersOf(shelf.kind, i, [...all]);
  const tabs = KINDS.map(kind => element("button", {class: "tab", "aria-pressed": String(kind === shelf.kind), onclick: () => {
    Object.assign(shelf, {kind, many: FEW}); showMembers(shelf); }}, kind));
  const rows = listed.slice(0, shelf.many).map(node => element("li", {}, nodeButton(node, true), element("span", {class: "quiet"}, sure(node, " ")),
    ...textsOf(node).map(([column, text]) => element("span", {class: "text", title: `${column}: ${text}`}, text))));
  const rest = listed.length - rows.length;
  place.replaceChildren(element("div", {class: "tabs", role: "group", "aria-label": "Which members"}, ...tabs), element("ul", {}, ...rows),
    ...(rest > 0 ? [element("button", {class: "small more", onclick: () => { shelf.many += MORE; showMembers(shelf); }}, `Show more (${rest.toLocaleString("en")} on the map)`)] : []));
}

function groupedNodes() {
  const groups = new Map();
  for (let node = 0; node < count; node++) { const i = classOf(node); if (!groups.has(i)) groups.set(i, []); groups.get(i).push(node); }
  return groups;
}

watchers.push(() => { const groups = groupedNodes(); for (const shelf of shelves) showMembers(shelf, groups); });

// A form that moves a node to another class.
const shortened = new Set(story.shortened);
const openClasses = () => story.classes.map((_, i) => i).filter(i => alive(i) && !now.parts.has(i));
function moveForm(node) {
  if (shortened.has(node)) return [];  // a shortened name does not identify the node
  const choice = element("select", {"aria-label": "Class of this node", id: "move-to"}, ...openClasses().map(i => element("option", {value: i, ...(i === classOf(node) ? {selected: ""} : {})}, className(i))));
  const move = () => {
    const i = Number(choice.value);
    if (i === classOf(node)) return say(`“${story.names[node]}” is already in ${className(i)}.`, true);
    decide({do: "relabel", nodes: [story.names[node]], class: story.classes[i].id});
    say(`“${story.names[node]}” moved to ${className(i)}.`);
  };
  return [element("p", {class: "move"}, element("label", {for: "move-to"}, "Class: "), choice, element("button", {class: "small", id: "move", onclick: move}, "Move"))];
}
nodeExtras.push(node => [...textsOf(node).map(([column, text]) => element("p", {class: "text"}, element("b", {}, `${column} `), text)), ...moveForm(node)]);

// Decisions about the selected nodes. `named` are those whose names identify them.
selectionActions.push(nodes => {
  const named = nodes.filter(i => !shortened.has(i)), names = () => named.map(i => story.names[i]);
  const decidable = named.length > 0 && named.length <= story.mostChosen;
  const off = disabled => disabled ? {disabled: ""} : {};
  const finish = (decision, done) => { decide(decision); selecting([]); say(done); };
  const wrong = story.given ? named.filter(i => story.given[i] !== NO_CLASS && !now.unlabelled.has(i)) : [];
  const choice = element("select", {"aria-label": "Class of the selected nodes", id: "chosen-to"}, ...openClasses().map(i => element("option", {value: i}, className(i))));
  const create = () => ask({
    title: `New class of ${noun(named.length, "node")}`, label: "Name", type: "text", value: `new-${nextId(decisions)}`,
    text: "When you save, the model gets a class at the mean of these nodes, and the nodes get it as their label.",
    check: value => objection(value.trim(), []),
    done: value => finish({do: "create", nodes: names(), name: value.trim(), class: nextId(decisions), ...(count < story.numNodes ? {among: count} : {})},
      `“${value.trim()}” has ${noun(named.length, "node")}. Its card comes when you save.`),
  });
  const move = () => { const i = Number(choice.value); finish({do: "relabel", nodes: names(), class: story.classes[i].id}, `${noun(named.length, "node")} moved to ${className(i)}.`); };
  return [
    element("button", {class: "small", id: "create", onclick: create, ...off(!decidable || named.length < 3)}, "New class…"),
    element("span", {class: "move"}, choice, element("button", {class: "small", id: "chosen-move", onclick: move, ...off(!decidable)}, "Move")),
    ...(wrong.length ? [element("button", {class: "small", id: "unlabel", onclick: () => finish({do: "unlabel", nodes: wrong.map(i => story.names[i])}, `The label of ${noun(wrong.length, "node")} is removed when you save.`)}, `Wrong label (${wrong.length.toLocaleString("en")})`)] : []),
    ...(named.length > story.mostChosen ? [element("p", {class: "quiet"}, `A decision is about at most ${noun(story.mostChosen, "node")}.`)] : []),
  ];
});
