"use strict";
// The page of kopt view: its changes come as server-sent events, code by a request.

async function loadCode(address) {
  const answer = await fetch(address);
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  return text;
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
