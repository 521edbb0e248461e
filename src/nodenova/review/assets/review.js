"use strict";
// The decisions: asking, listing, undoing, saving.

const sentence = d => {
  const called = id => story.classes[numberOf.get(id)].name;
  if (d.do === "rename") return `Class ${d.class} (${called(d.class)}) is called “${d.name}”.`;
  if (d.do === "reject") return `Class ${d.class} (${called(d.class)}) is rejected.`;
  if (d.do === "split") return `Class ${d.class} (${called(d.class)}) is split into ${d.into}.`;
  if (d.do === "relabel") return `${d.nodes.map(node => `“${node}”`).join(", ")} ${d.nodes.length === 1 ? "is" : "are"} of class ${d.class} (${called(d.class)}).`;
  return `Classes ${d.classes.map(id => `${id} (${called(id)})`).join(" and ")} are one, called “${d.name}”.`;
};

function say(text, problem = false) {
  $("message").textContent = text;
  $("message").classList.toggle("problem", problem);
}

function showDesk() {
  const n = decisions.length, open = n - saved;
  $("tally").textContent = n ? `${n} ${n === 1 ? "decision" : "decisions"}${open ? ", not saved yet" : ", saved"}` : "No decisions yet";
  $("decisions").replaceChildren(...decisions.map(d => element("li", {}, sentence(d))));
  $("undo").disabled = !n;
  $("save").disabled = !n;
  $("merge").disabled = ticked().length < 2;
}

// One question in a dialog. `check` says what is wrong with an answer, or "".
function ask({title, text, label, value, type, check, done}) {
  const dialog = $("ask"), input = $("ask-input");
  $("ask-title").textContent = title; $("ask-text").textContent = text; $("ask-label").textContent = label;
  $("ask-error").textContent = "";
  input.type = type; input.value = value;
  dialog.querySelector("form").onsubmit = e => {
    const problem = check(input.value);
    if (problem) { e.preventDefault(); $("ask-error").textContent = problem; input.focus(); } else done(input.value);
  };
  dialog.showModal();
  input.select();
}
$("ask-cancel").addEventListener("click", () => $("ask").close());

function askParts(i) {
  const most = Math.min(20, story.classes[i].size);
  ask({
    title: `Split ${className(i)}`, label: "Parts", type: "number", value: "2",
    text: "The nodes of the class are grouped anew when the review is applied; the parts get ids and names of their own.",
    check: value => /^\d+$/.test(value) && value >= 2 && value <= most ? "" : `A whole number from 2 to ${most}, please.`,
    done: value => decide({do: "split", class: story.classes[i].id, into: Number(value)}),
  });
}

$("merge").addEventListener("click", () => {
  const members = ticked().sort((a, b) => a - b), one = oldest(members);
  ask({
    title: `Merge ${members.map(className).join(", ")}`, label: "Name", type: "text", value: className(one),
    text: `They become one class with the id ${story.classes[one].id}.`,
    check: value => objection(value, members),
    done: value => {
      for (const box of document.querySelectorAll("[data-tick]")) box.checked = false;
      decide({do: "merge", classes: members.map(i => story.classes[i].id), name: value.trim()});
    },
  });
});

$("undo").addEventListener("click", () => { change(decisions.slice(0, -1)); say(""); });

$("save").addEventListener("click", async () => {
  const content = JSON.stringify({...story.review, decisions}, null, 1) + "\n";
  if (!story.served) {
    const link = element("a", {href: URL.createObjectURL(new Blob([content], {type: "application/json"})), download: "review.json"});
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    saved = decisions.length;
    showDesk();
    say("Saved as review.json. To make it part of the model: nodenova apply-review RUN review.json");
    return;
  }
  const n = decisions.length;
  await send("/review", content, `Saved: ${n} ${n === 1 ? "decision is" : "decisions are"} part of the run.`);
});

// What the server keeps; then the page is loaded anew, and says what was done.
async function send(where, content, done) {
  const busy = [$("save"), $("take-back")].filter(button => button && !button.disabled);
  for (const button of busy) button.disabled = true;
  say("Saving…");
  try {
    const answer = await fetch(where, {method: "POST", headers: {"Content-Type": "application/json"}, body: content});
    const text = await answer.text();
    if (!answer.ok) throw new Error(text.trim());
    change([]);
    try { sessionStorage.setItem(TOAST, done); } catch { /* a browser that keeps nothing */ }
    location.reload();
  } catch (error) {
    say(error instanceof TypeError ? "The server does not answer. Is nodenova review still running?" : error.message, true);
    for (const button of busy) button.disabled = false;
  }
}
const TOAST = "nodenova has done";

if (story.served && $("take-back")) {
  $("take-back").hidden = false;
  $("take-back").addEventListener("click", () => decisions.length ? say("Save or undo your open decisions first.", true)
    : send("/undo", JSON.stringify({...story.review, decisions: []}) + "\n", "Taken back: the last decision is no longer part of the run."));
}

addEventListener("beforeunload", e => { if (decisions.length > saved) e.preventDefault(); });
addEventListener("keydown", e => {
  if (e.key === "/" && !e.target.matches("input, textarea")) { e.preventDefault(); $("search").focus(); }
});

watchers.push(showDesk);
if (story.served) $("save").textContent = "Save into the run";
try {
  const kept = JSON.parse(localStorage.getItem(shelf));
  if (Array.isArray(kept) && kept.length) { change(kept); say("Decisions of an earlier visit are here again."); }
} catch { /* nothing kept, or nothing readable */ }
try {
  const done = sessionStorage.getItem(TOAST);
  if (done) { sessionStorage.removeItem(TOAST); say(done); }
} catch { /* nothing was kept */ }
