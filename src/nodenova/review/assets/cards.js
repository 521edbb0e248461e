"use strict";
// The cards of the classes: how they look after the decisions so far.

const cards = [...document.querySelectorAll("[data-card]")].map(card => ({card, i: Number(card.dataset.card), name: card.querySelector(".name")}));
for (const entry of cards) {  // the verdict as it was, for Undo
  entry.verdict = entry.card.querySelector(".trust");
  if (entry.verdict) Object.assign(entry, {level: entry.verdict.className, word: entry.verdict.querySelector("b").textContent});
}
const ticked = () => [...document.querySelectorAll("[data-tick]:checked")].map(box => Number(box.dataset.tick));

function showCards() {
  for (const {card, i, name, verdict, level, word} of cards) {
    const gone = !alive(i), parts = now.parts.get(i), decided = card.querySelector(".decided");
    const members = story.classes.map((_, j) => j).filter(j => j !== i && now.into[j] === i);
    if (document.activeElement !== name) name.value = now.names[i];
    card.setAttribute("aria-label", now.names[i]);
    card.classList.toggle("gone", gone);
    for (const control of card.querySelectorAll("input, [data-do], [data-use]")) control.disabled = gone || parts !== undefined;
    if (gone) card.querySelector("[data-tick]").checked = false;
    decided.classList.remove("problem");
    decided.textContent = now.into[i] < 0 ? "Rejected: its nodes go to their next most likely class."
      : gone ? `Merged into ${className(now.into[i])}.`
      : parts ? `Will be split into ${parts} when you save.`
      : members.length ? `Includes ${members.map(j => story.classes[j].name).join(", ")}.` : "";
    if (verdict) {  // a class that was decided on is not judged
      const mine = alive(i) && now.own.has(i);
      verdict.className = mine ? "trust yours" : level;
      verdict.querySelector("b").textContent = mine ? "Yours." : word;
      verdict.querySelector(".reasons").hidden = mine;
    }
    for (const line of card.querySelectorAll("[data-hide-if]")) {  // hide lines about itself and about rejected classes
      const other = now.into[Number(line.dataset.hideIf)];
      line.hidden = [now.into[i], -1].includes(other) || ("merge" in line.dataset && isOwn(now.into[i]) && isOwn(other));
    }
    const use = card.querySelector("[data-use]");
    if (use) use.parentElement.hidden = now.own.has(i) && now.names[i] !== use.dataset.use;
    card.querySelector("[data-glyph]").replaceChildren(glyph(look(now.into[i])));
  }
  for (const place of document.querySelectorAll("[data-class]")) {
    const i = now.into[Number(place.dataset.class)];
    place.replaceChildren(glyph(look(i)), i < 0 ? `${story.classes[Number(place.dataset.class)].name} (rejected)` : className(i));
  }
}

// Beside the name: the message at the foot of the window is far from it.
function showProblem(i, text) {
  const place = cards.find(entry => entry.i === i).card.querySelector(".decided");
  place.textContent = text;
  place.classList.add("problem");
}

function rename(i, field) {
  const name = field.value.trim();
  const problem = name === now.names[i] ? "" : objection(name, [i]);
  if (problem || name === now.names[i]) {
    field.value = now.names[i];
    say(problem, true);
    showCards();
    if (problem) showProblem(i, `Not renamed to “${name}”. ${problem}`);
    return;
  }
  const last = decisions.at(-1), id = story.classes[i].id, again = last && last.do === "rename" && last.class === id;
  const before = again ? decisions.slice(0, -1) : decisions;
  say("");
  saved = Math.min(saved, before.length);
  change(judged(before).names[i] === name ? before : [...before, {do: "rename", class: id, name}]);
}

for (const {card, i, name} of cards) {
  name.addEventListener("change", () => rename(i, name));
  name.addEventListener("keydown", e => {
    if (e.key === "Escape") { name.value = now.names[i]; name.blur(); } else if (e.key === "Enter") name.blur();
  });
  card.querySelector("[data-use]")?.addEventListener("click", e => { name.value = e.currentTarget.dataset.use; rename(i, name); });
  card.querySelector("[data-do=reject]")?.addEventListener("click", () => decide({do: "reject", class: story.classes[i].id}));
  card.querySelector("[data-do=split]").addEventListener("click", () => askParts(i));
  card.querySelector("[data-tick]").addEventListener("change", () => showDesk());
  card.querySelector("[data-show]").addEventListener("click", () => {
    if (map.mode !== "class") { document.querySelector("[name=view][value=class]").click(); }
    map.lit = now.into[i];
    showLegend();
    $("map-section").scrollIntoView({block: "start"});
    $("map").focus({preventScroll: true});
  });
}

watchers.push(showCards);
