"use strict";
// New and changed decisions, as the server renders them: it escapes everything, and scripts in it could not run.
const most = 200;
const table = document.getElementById("entries");
const body = table.tBodies[0];
const button = document.getElementById("live");
const state = document.getElementById("state");
let source = null;

function put(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  const row = holder.content.querySelector("tr");
  if (!row) return;
  const there = [...body.rows].find((each) => each.dataset.id === row.dataset.id);
  if (there) there.replaceWith(row);
  else body.prepend(row);
  while (body.rows.length > most) body.lastElementChild.remove();
  document.getElementById("none")?.remove();
}

function start() {
  source = new EventSource(table.dataset.stream);
  source.addEventListener("entry", (event) => put(event.data));
  source.addEventListener("behind", () => location.reload());
  source.onopen = () => { state.textContent = "New decisions appear at the top."; };
  source.onerror = () => { state.textContent = "The connection is lost, and tried again."; };
  button.setAttribute("aria-pressed", "true");
}

function stop() {
  source.close();
  source = null;
  state.textContent = "Stopped.";
  button.setAttribute("aria-pressed", "false");
}

button.hidden = false;
button.addEventListener("click", () => (source ? stop() : start()));
start();
