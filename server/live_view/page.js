"use strict";
// Puts the parts of a page into their places, and loads code when it is unfolded: by `loadCode`, of
// the script beside this one. What was unfolded stays so. All HTML comes from kopt's templates, which
// escape.

const code = new Map(); // address -> HTML that was loaded
const inside = new WeakMap(); // details element -> HTML that it shows

function show(details, html) {
  if (inside.get(details) === html) return;
  inside.set(details, html);
  let place = details.querySelector(":scope > .loaded");
  if (!place) {
    place = document.createElement("div");
    place.className = "loaded";
    details.append(place);
  }
  place.innerHTML = html;
}

async function unfold(details) {
  const address = details.dataset.address;
  if (code.has(address)) show(details, code.get(address));
  try {
    const text = await loadCode(address);
    code.set(address, text);
    show(details, text);
  } catch (error) {
    if (!code.has(address)) {
      show(details, "");
      details.querySelector(":scope > .loaded").textContent = `not available: ${error.message}`;
    }
  }
}

document.addEventListener(
  "toggle",
  (event) => {
    const details = event.target;
    if (details.open && details.dataset.address) unfold(details);
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
