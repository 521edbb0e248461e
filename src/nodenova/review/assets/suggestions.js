"use strict";
// Suggestions: a click adds the decision, Undo removes it.

const offered = [...document.querySelectorAll("[data-accept]")].map(button => ({button, text: button.textContent, decision: story.suggestions[Number(button.dataset.accept)]}));
// The class that a class is part of now; -1 when it is rejected or will be split.
const placeOf = id => { const i = now.into[numberOf.get(id)]; return i >= 0 && now.parts.has(i) ? -1 : i; };
const relabelled = node => decisions.findLast(d => (d.do === "relabel" || d.do === "create") && d.nodes.includes(node));

function isTaken(d) {
  if (d.do === "merge") return now.into[numberOf.get(d.classes[0])] >= 0 && new Set(d.classes.map(id => now.into[numberOf.get(id)])).size === 1;
  if (d.do === "split") return now.parts.has(numberOf.get(d.class));
  const move = relabelled(d.nodes[0]);
  return move !== undefined && placeOf(d.class) >= 0 && now.into[numberOf.get(move.class)] === now.into[numberOf.get(d.class)];
}

// Whether a suggestion would reverse a decision, as `find_reversed` in nodenova.model.decisions finds it. The page has none
// that reverses a saved one, but open decisions may make one.
function isReversal(d) {
  if (isTaken(d)) return false;
  if (d.do === "merge") {
    const [a, b] = d.classes.map(placeOf), joins = (i, j) => now.into[i] === a && now.into[j] === b;
    return a >= 0 && b >= 0 && (isOwn(a) && isOwn(b) || story.apart.some(([i, j]) => joins(i, j) || joins(j, i)));
  }
  if (d.do === "split") return now.own.has(now.into[numberOf.get(d.class)]);
  const move = relabelled(d.nodes[0]);
  return move !== undefined && now.into[numberOf.get(move.class)] >= 0;
}

function isOpen(d) {
  const ids = d.do === "merge" ? d.classes : [d.class];
  return !isTaken(d) && !isReversal(d) && ids.every(id => placeOf(id) >= 0) && (d.do !== "split" || alive(numberOf.get(d.class)));
}

function accept(d) {
  if (!isOpen(d)) return;
  if (d.do === "split") decide(d);
  else if (d.do === "relabel") decide({...d, class: story.classes[placeOf(d.class)].id});
  else {
    const members = d.classes.map(placeOf).sort((a, b) => a - b);
    decide({do: "merge", classes: members.map(i => story.classes[i].id), name: className(namesake(members))});
  }
}

for (const {button, decision} of offered) button.addEventListener("click", () => accept(decision));
watchers.push(() => {
  for (const {button, text, decision} of offered) {
    button.disabled = !isOpen(decision);
    button.closest("li").hidden = isReversal(decision);
    button.textContent = isTaken(decision) ? "Accepted" : text;
    if (isTaken(decision))  // the classes by the names they had: one of them is gone
      for (const place of button.parentElement.querySelectorAll("[data-class]")) {
        const i = Number(place.dataset.class);
        place.replaceChildren(glyph(look(now.into[i])), story.classes[i].name);
      }
  }
});
