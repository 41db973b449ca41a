"use strict";
// Puts the parts of a page that the server sends into their places, and fetches code when it is
// unfolded. What was unfolded stays so. All HTML comes from kopt's templates, which escape.

const code = new Map(); // address -> HTML that was fetched
const inside = new WeakMap(); // details element -> HTML that it shows

function show(details, html) {
  if (inside.get(details) === html) return;
  inside.set(details, html);
  let place = details.querySelector(":scope > .fetched");
  if (!place) {
    place = document.createElement("div");
    place.className = "fetched";
    details.append(place);
  }
  place.innerHTML = html;
}

async function fetchCode(details) {
  const address = details.dataset.address;
  if (code.has(address)) show(details, code.get(address));
  try {
    const answer = await fetch(address);
    const text = await answer.text();
    if (!answer.ok) throw new Error(text);
    code.set(address, text);
    show(details, text);
  } catch (error) {
    if (!code.has(address)) {
      show(details, "");
      details.querySelector(":scope > .fetched").textContent = `not available: ${error.message}`;
    }
  }
}

document.addEventListener(
  "toggle",
  (event) => {
    const details = event.target;
    if (details.open && details.dataset.address) fetchCode(details);
  },
  true,
);

function replace(name, html) {
  const section = document.getElementById(name);
  if (!section || section.innerHTML === html) return;
  const unfolded = [...section.querySelectorAll("details[open][id]")].map((one) => one.id);
  const ticked = [...section.querySelectorAll("input:checked")].map((one) => one.id);
  section.innerHTML = html;
  for (const details of section.querySelectorAll("details[data-address]")) {
    if (code.has(details.dataset.address) && unfolded.includes(details.id)) {
      show(details, code.get(details.dataset.address));
    }
  }
  for (const id of unfolded) {
    const details = document.getElementById(id);
    if (details) details.open = true;
  }
  for (const id of ticked) {
    const box = document.getElementById(id);
    if (box) box.checked = true;
  }
}

const connection = document.getElementById("connection");
let changes = null;

function listen() {
  changes = new EventSource(document.querySelector("main").dataset.events);
  changes.addEventListener("parts", (event) => {
    for (const [name, html] of Object.entries(JSON.parse(event.data))) replace(name, html);
  });
  changes.onopen = () => {
    connection.textContent = "live";
  };
  changes.onerror = () => {
    connection.textContent = "not connected: is kopt view still running?";
  };
}

// A browser opens six connections to one server: tabs that nobody sees must not take them.
document.addEventListener("visibilitychange", () => {
  changes.close();
  if (!document.hidden) listen();
});
listen();
