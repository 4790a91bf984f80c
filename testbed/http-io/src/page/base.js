"use strict";
const find = (selector, within = document) => within.querySelector(selector);
const make = (name, text = "", attributes = {}) => {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};
const said = find("#said"), UNREACHED = "The server cannot be reached.";
const say = (text, kind = "") => { said.textContent = text; said.className = kind; };
const size = (bytes) => {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let unit = 0, shown = bytes;
  while (shown >= 1000 && unit < units.length - 1) { shown /= 1000; unit++; }
  return `${unit && shown < 100 ? shown.toFixed(1) : Math.round(shown)} ${units[unit]}`;
};
const reason = (told) => [told.error, told.hint].filter(Boolean).join(": ");
const why = async (answer) => {
  try { return reason(await answer.json()); } catch { return `the server answered ${answer.status}`; }
};

/* Asks in a dialog; gives the answer, or nothing. */
function ask(question, yes, text) {
  const dialog = find("#ask") || asking(), answer = find("#answer");
  find("#question").textContent = question;
  find("#yes").textContent = yes;
  find("#answer-of").hidden = text === undefined;
  answer.value = text || "";
  dialog.returnValue = "";
  dialog.showModal();
  (text === undefined ? find("#no") : answer).focus();
  return new Promise((done) => { dialog.onclose = () => done(dialog.returnValue && (text === undefined ? true : answer.value.trim())); });
}

function asking() {
  const dialog = make("dialog", "", { id: "ask", "aria-labelledby": "question" });
  const label = make("label", "Name ", { id: "answer-of" }), answer = make("input", "", { id: "answer", autocomplete: "off" });
  const row = make("div", "", { class: "row" }), no = make("button", "Cancel", { id: "no", type: "button" }), yes = make("button", "", { id: "yes", class: "main", type: "button" });
  label.append(answer);
  row.append(no, yes);
  dialog.append(make("p", "", { id: "question" }), label, row);
  no.addEventListener("click", () => dialog.close(""));
  yes.addEventListener("click", () => dialog.close("yes"));
  answer.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); dialog.close("yes"); } });
  document.body.append(dialog);
  return dialog;
}
