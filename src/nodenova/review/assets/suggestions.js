"use strict";
// Suggestions: a click adds the decision, Undo removes it.

const offered = [...document.querySelectorAll("[data-accept]")].map(button => ({button, text: button.textContent, decision: story.suggestions[Number(button.dataset.accept)]}));
// The class that a class is part of now; -1 when it is rejected or will be split.
const placeOf = id => { const i = now.into[numberOf.get(id)]; return i >= 0 && now.parts.has(i) ? -1 : i; };
const relabelled = node => decisions.findLast(d => d.do === "relabel" && d.nodes.includes(node));

function isTaken(d) {
  if (d.do === "merge") return now.into[numberOf.get(d.classes[0])] >= 0 && new Set(d.classes.map(id => now.into[numberOf.get(id)])).size === 1;
  if (d.do === "split") return now.parts.has(numberOf.get(d.class));
  return relabelled(d.nodes[0]) !== undefined;
}

function isOpen(d) {
  const ids = d.do === "merge" ? d.classes : [d.class];
  return !isTaken(d) && ids.every(id => placeOf(id) >= 0) && (d.do !== "split" || alive(numberOf.get(d.class)));
}

function accept(d) {
  if (!isOpen(d)) return;
  if (d.do === "split") decide(d);
  else if (d.do === "relabel") decide({...d, class: story.classes[placeOf(d.class)].id});
  else {
    const members = d.classes.map(placeOf).sort((a, b) => a - b);
    decide({do: "merge", classes: members.map(i => story.classes[i].id), name: className(oldest(members))});
  }
}

for (const {button, decision} of offered) button.addEventListener("click", () => accept(decision));
watchers.push(() => {
  for (const {button, text, decision} of offered) {
    button.disabled = !isOpen(decision);
    button.textContent = isTaken(decision) ? "Accepted" : text;
    if (isTaken(decision))  // the classes by the names they had: one of them is gone
      for (const place of button.parentElement.querySelectorAll("[data-class]")) {
        const i = Number(place.dataset.class);
        place.replaceChildren(glyph(look(now.into[i])), story.classes[i].name);
      }
  }
});
