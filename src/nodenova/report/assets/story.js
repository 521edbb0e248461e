"use strict";
// What the page is about, and what the reader has decided so far. The other scripts read both and ask for changes here.

const NOBODY = 0xffff;
const story = JSON.parse(document.getElementById("story").textContent);
const $ = id => document.getElementById(id);

function unpacked(text, Kind) {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  return new Kind(bytes.buffer);
}
for (const key of ["xy", "first", "second", "p1", "p2", "near", "given", "true"])
  if (story[key] !== null) story[key] = unpacked(story[key], Uint16Array);
for (const key of ["degree", "nearCount", "start", "targets"]) story[key] = unpacked(story[key], Uint32Array);
const count = story.names.length;

// Decisions in the order they were made: exactly what review.json says.
let decisions = [];
let saved = 0;        // how many of them are in a file already
const watchers = [];  // called after every change

const numberOf = new Map(story.classes.map((c, i) => [c.id, i]));

// What the classes are after the decisions. `into[i]`: the class that i is part of now, -1 when it is rejected.
function judged(list) {
  const names = story.classes.map(c => c.name), into = story.classes.map((_, i) => i), parts = new Map();
  for (const d of list) {
    if (d.do === "rename") names[numberOf.get(d.class)] = d.name;
    else if (d.do === "reject") { const bad = numberOf.get(d.class); into.forEach((c, i) => { if (c === bad) into[i] = -1; }); }
    else if (d.do === "split") parts.set(numberOf.get(d.class), d.into);
    else {
      const members = d.classes.map(id => numberOf.get(id)), one = oldest(members);
      into.forEach((c, i) => { if (members.includes(c)) into[i] = one; });
      names[one] = d.name;
    }
  }
  return {names, into, parts};
}
let now = judged(decisions);

// A merged class keeps the id of the oldest: known before discovered, then the lowest id. Classes come in that order.
const oldest = members => Math.min(...members);

const alive = i => now.into[i] === i;
const className = i => i < 0 || i === NOBODY ? "no class" : now.names[i];

// The class a node is in after the decisions, and its probability; a rejected class leaves its nodes to the next likely.
function classOf(node) {
  const a = now.into[story.first[node]], second = story.second[node];
  return a >= 0 ? a : second === NOBODY ? -1 : now.into[second];
}
function probability(node) {
  const p1 = story.p1[node] / 65535, p2 = story.p2[node] / 65535, second = story.second[node];
  const a = now.into[story.first[node]], b = second === NOBODY ? -1 : now.into[second];
  return a < 0 ? p2 / Math.max(1 - p1, 1e-6) : a === b ? p1 + p2 : p1;
}

const shelf = `nodenova review of ${story.model} after ${story.edits}`;  // decisions survive a reload, for this model only

function change(list) {
  decisions = list;
  saved = Math.min(saved, list.length);
  now = judged(list);
  try {
    if (list.length) localStorage.setItem(shelf, JSON.stringify(list)); else localStorage.removeItem(shelf);
  } catch { /* a browser that keeps nothing: the warning before leaving still stands */ }
  for (const watcher of watchers) watcher();
}
const decide = decision => change([...decisions, decision]);

// Why a name cannot be given to a class (or to one made of several), or "" when it can.
function objection(name, members) {
  if (!name.trim()) return "A class needs a name.";
  const other = story.classes.findIndex((_, i) => alive(i) && !members.includes(i) && now.names[i] === name.trim());
  return other < 0 ? "" : `Class ${story.classes[other].id} has this name already. Merge the two, or choose another name.`;
}

const percent = p => `${Math.round(100 * p)} %`;

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes))
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value); else made.setAttribute(key, value);
  made.append(...children);  // strings become text, never markup
  return made;
}
