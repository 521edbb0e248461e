"use strict";
// The data of the page and the decisions so far. The other scripts read both and change decisions here.

const NO_CLASS = 0xffff;
// A story of a graded run has no probabilities (p), no neighbors (degree and what follows) and no review.
const story = JSON.parse(document.getElementById("story").textContent);
const $ = id => document.getElementById(id);

function unpacked(text, Kind) {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  return new Kind(bytes.buffer);
}
for (const key of ["xy", "best", "p", "near", "given", "true"]) if (story[key]) story[key] = unpacked(story[key], Uint16Array);
if (story.edges) story.edges = unpacked(story.edges, Uint8Array);
for (const key of ["degree", "nearCount", "start", "targets"]) if (story[key]) story[key] = unpacked(story[key], Uint32Array);
const count = story.names.length;

// Decisions in the order they were made: exactly as in review.json.
let decisions = [];
let saved = 0;        // how many of them are in a file already
const watchers = [];  // called after every change

const numberOf = new Map(story.classes.map((c, i) => [c.id, i]));
const nodeOf = new Map();  // filled when a decision first needs it: a large map has a million names
function numberOfNode(name) {
  if (!nodeOf.size) story.names.forEach((one, i) => nodeOf.set(one, i));
  return nodeOf.get(String(name));
}

const found = story.classes.length;  // classes of the model; those that open decisions create come behind them
const nextId = list => list.reduce((id, d) => id + (d.do === "create" ? 1 : d.do === "split" ? d.into : 0), story.nextId || 0);

// What the classes are after the decisions. `into[i]`: the class that i is part of now, -1 when it is rejected.
// `own` are the classes that were named or merged: each is one class of its own.
function judged(list) {
  for (const c of story.classes.splice(found)) numberOf.delete(c.id);
  const names = story.classes.map(c => c.name), into = story.classes.map((_, i) => i), parts = new Map(), own = new Set();
  const unlabelled = new Set(), moved = new Map(story.moved || []);  // nodes that a person has put in a class, by number
  for (const d of list) {
    if (d.do === "rename") { names[numberOf.get(d.class)] = d.name; own.add(numberOf.get(d.class)); }
    else if (d.do === "reject") { const bad = numberOf.get(d.class); into.forEach((c, i) => { if (c === bad) into[i] = -1; }); }
    else if (d.do === "create") {
      const i = story.classes.push({id: d.class, name: d.name, isNew: true, size: d.nodes.length}) - 1;
      numberOf.set(d.class, i); names.push(d.name); into.push(i); own.add(i);
      for (const node of d.nodes) if (numberOfNode(node) !== undefined) moved.set(numberOfNode(node), i);
    } else if (d.do === "relabel") { for (const node of d.nodes) if (numberOfNode(node) !== undefined) moved.set(numberOfNode(node), numberOf.get(d.class)); }
    else if (d.do === "unlabel") { for (const node of d.nodes) if (numberOfNode(node) !== undefined) unlabelled.add(numberOfNode(node)); }
    else if (d.do === "split") parts.set(numberOf.get(d.class), d.into);
    else if (d.do === "merge") {
      const members = d.classes.map(id => numberOf.get(id)), one = oldest(members);
      into.forEach((c, i) => { if (members.includes(c)) into[i] = one; });
      names[one] = d.name;
      own.add(one);
    }
  }
  return {names, into, parts, moved, own, unlabelled};
}
let now = judged(decisions);

// A merged class keeps the id of the oldest: known before discovered, then the lowest id. Classes come in that order.
const oldest = members => Math.min(...members);

// The one whose name a merged class gets: a name that a person gave is not lost to an automatic one.
const isOwn = i => now.own.has(i) || Boolean(story.own && story.own[i]);
const namesake = members => oldest(members.some(isOwn) ? members.filter(isOwn) : members);

// Classes that the map shows in place of those of the run: {groupOf, lookOf, nameOf, isNew}; null for those of the run.
let other = null;

const alive = i => now.into[i] === i;
const className = i => i < 0 || i === NO_CLASS ? "no class" : now.names[i];

// The likely classes of a node after the decisions, the likeliest first, as [class, probability]: a merged class has the
// sum of its parts, a rejected one leaves its share to the others. This is what applying the review does.
function weighed(node) {
  const sums = new Map();
  let rejected = 0, left = 0;
  for (let k = node * story.likely; k < (node + 1) * story.likely; k++) {
    if (story.best[k] === NO_CLASS) continue;
    const p = story.p ? Math.exp(-story.p[k] / story.logSteps) : 1, i = now.into[story.best[k]];
    if (i < 0) rejected += p; else { left += p; sums.set(i, (sums.get(i) || 0) + p); }
  }
  const all = Math.max(1 - rejected, left);
  return [...sums].map(([i, p]) => [i, p / all]).sort((a, b) => b[1] - a[1]);
}

const current = new Int32Array(count), sureness = new Float32Array(count);
function weighAll() {
  const changed = decisions.some(d => d.do === "merge" || d.do === "reject");
  for (let node = 0; node < count; node++)  // a million nodes: no lists where the first class stays the first
    if (changed) [current[node], sureness[node]] = weighed(node)[0] || [-1, 0];
    else { const k = node * story.likely; current[node] = story.best[k]; sureness[node] = story.p ? Math.exp(-story.p[k] / story.logSteps) : 1; }
  for (const [node, i] of now.moved) if (now.into[i] >= 0) { current[node] = now.into[i]; sureness[node] = 1; }
}
const classOf = node => current[node];
const probability = node => sureness[node];
weighAll();

const shelf = story.review && `nodenova review of ${story.review.model} after ${story.edits}, ${story.review.after}`;  // decisions survive a reload, for this model only

function change(list) {
  decisions = list;
  saved = Math.min(saved, list.length);
  now = judged(list);
  weighAll();
  try {
    if (list.length) localStorage.setItem(shelf, JSON.stringify(list)); else localStorage.removeItem(shelf);
  } catch { /* a browser that keeps nothing: the warning before leaving still stands */ }
  for (const watcher of watchers) watcher();
}
const decide = decision => change([...decisions, decision]);

// The problem with a name for a class (or for one merged of several), or "".
function objection(name, members) {
  if (!name.trim()) return "A class needs a name.";
  const other = story.classes.findIndex((_, i) => alive(i) && !members.includes(i) && now.names[i] === name.trim());
  return other < 0 ? "" : `Class ${story.classes[other].id} already has this name. Merge the two, or choose another name.`;
}

// The confidence in the class of a node after a separator; "" where it is unknown.
const sure = (node, sign) => story.p ? `${sign}${percent(probability(node))}` : "";
const percent = p => `${Math.round(100 * p)}%`;

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes))
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value); else node.setAttribute(key, value);
  node.append(...children);  // strings become text, never markup
  return node;
}
