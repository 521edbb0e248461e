"use strict";
// In a notebook: every decision is sent to the cell around this page at once, and is applied there.

watchers.push(() => parent.postMessage({nodenova: {...story.review, decisions}}, "*"));
watchers.push(() => { saved = decisions.length; });  // nothing is lost by closing it
$("save").hidden = true;
say("Your decisions are in widget.decisions; apply them with run.apply(widget.decisions).");
