"use strict";
// New and changed decisions, as the server renders them: it escapes everything, and scripts in it could not run.
const most = 200;
const patience = 3000;
const table = document.getElementById("entries");
const body = table.tBodies[0];
const button = document.getElementById("live");
const state = document.getElementById("state");
let source = null;
let retry = null;
let older = "older" in table.dataset;

function isBefore(row, other) {
  const difference = Number(row.dataset.at) - Number(other.dataset.at);
  return difference < 0 || (difference === 0 && row.dataset.id < other.dataset.id);
}

function put(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  const row = holder.content.querySelector("tr");
  if (!row) return;
  const rows = [...body.rows];
  const there = rows.find((each) => each.dataset.id === row.dataset.id);
  const next = rows.find((each) => isBefore(each, row));
  if (there) there.replaceWith(row);
  else if (next) next.before(row);
  else if (!older) body.append(row);
  for (; body.rows.length > most; older = true) body.lastElementChild.remove();
  document.getElementById("none")?.remove();
}

function start() {
  source = new EventSource(table.dataset.stream);
  source.addEventListener("entry", (event) => put(event.data));
  source.addEventListener("behind", () => location.reload());
  source.onopen = () => { state.textContent = "New decisions appear at the top."; };
  source.onerror = () => {
    state.textContent = "The connection is lost, and tried again.";
    // A browser gives up what is refused once: by a proxy while the gateway starts, or as too many are live.
    if (source.readyState === EventSource.CLOSED) retry = setTimeout(start, patience);
  };
  button.setAttribute("aria-pressed", "true");
}

function stop() {
  clearTimeout(retry);
  source.close();
  source = null;
  state.textContent = "Stopped.";
  button.setAttribute("aria-pressed", "false");
}

button.hidden = false;
button.addEventListener("click", () => (source ? stop() : start()));
start();
