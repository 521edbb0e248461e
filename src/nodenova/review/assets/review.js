"use strict";
// The decisions: dialogs, list, undo, save.

const sentence = d => {
  const called = id => story.classes[numberOf.get(id)].name;
  const nodes = d.nodes && (d.nodes.length > 5 ? noun(d.nodes.length, "node") : d.nodes.map(node => `“${node}”`).join(", "));
  if (d.do === "rename") return `Rename class ${d.class} (${called(d.class)}) to “${d.name}”.`;
  if (d.do === "reject") return `Reject class ${d.class} (${called(d.class)}).`;
  if (d.do === "split") return `Split class ${d.class} (${called(d.class)}) into ${d.into}.`;
  if (d.do === "relabel") return `Move ${nodes} to class ${d.class} (${called(d.class)}).`;
  if (d.do === "create") return `Make class ${d.class} “${d.name}” of ${nodes}.`;
  if (d.do === "unlabel") return `Remove the label of ${nodes}.`;
  return `Merge classes ${d.classes.map(id => `${id} (${called(id)})`).join(" and ")} as “${d.name}”.`;
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

// One question in a dialog. `check` returns the problem with an answer, or "".
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
    text: "The nodes of the class are regrouped when you save; each part gets its own id and name.",
    check: value => /^\d+$/.test(value) && value >= 2 && value <= most ? "" : `Enter a whole number from 2 to ${most}.`,
    done: value => decide({do: "split", class: story.classes[i].id, into: Number(value)}),
  });
}

$("merge").addEventListener("click", () => {
  const members = ticked().sort((a, b) => a - b), one = oldest(members);
  ask({
    title: `Merge ${members.map(className).join(", ")}`, label: "Name", type: "text", value: className(namesake(members)),
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
    download("review.json", "application/json", content);
    saved = decisions.length;
    showDesk();
    say("Saved as review.json. Apply it with: nodenova apply-review RUN review.json");
    return;
  }
  const n = decisions.length;
  await send("/review", content, `Saved ${n} ${n === 1 ? "decision" : "decisions"} to the run.`);
});

// Send to the server, then reload the page, which shows what was done.
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
    say(error instanceof TypeError ? "No answer from the server. Is nodenova review still running?" : error.message, true);
    for (const button of busy) button.disabled = false;
  }
}
const TOAST = "nodenova has done";

if (story.served && $("take-back")) {
  $("take-back").hidden = false;
  $("take-back").addEventListener("click", () => decisions.length ? say("Save or undo your open decisions first.", true)
    : send("/undo", JSON.stringify({...story.review, decisions: []}) + "\n", "Undone: the last decision is no longer part of the run."));
}

addEventListener("beforeunload", e => { if (decisions.length > saved) e.preventDefault(); });
addEventListener("keydown", e => {
  if (e.key === "/" && !e.target.matches("input, textarea")) { e.preventDefault(); $("search").focus(); }
});

watchers.push(() => {
  if ($("message").classList.contains("problem")) say("");  // it was about the decisions before
  showDesk();
});
if (story.served) $("save").textContent = "Save to the run";
try {
  const stored = JSON.parse(localStorage.getItem(shelf));
  if (Array.isArray(stored) && stored.length) { change(stored); say("Restored the decisions of your last visit."); }
} catch { /* nothing stored, or not readable */ }
try {
  const done = sessionStorage.getItem(TOAST);
  if (done) { sessionStorage.removeItem(TOAST); say(done); }
} catch { /* nothing stored */ }
