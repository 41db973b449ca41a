"use strict";
// The page of a run inside an MCP client (MCP Apps, 2026-01-26): the client names the run by the
// call of beam_step that it shows, and reads the page's parts and code from kopt's server.

const PROTOCOL = "2026-01-26";
const POLL_MS = 2000;
const NOT_YET = -32603; // the code of an answer that is refused as long as a job goes on
const asked = new Map(); // id -> how its answer is taken
const connection = document.getElementById("connection");
let lastId = 0;
let run = null;
let job = null;
let isCalling = false; // the call of beam_step has not returned
let timer = null;

function send(message) {
  window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
}

function request(method, params) {
  const id = ++lastId;
  return new Promise((resolve, reject) => {
    asked.set(id, { resolve, reject });
    send({ id, method, params });
  });
}

async function read(uri) {
  const { contents } = await request("resources/read", { uri });
  return contents[0].text;
}

function loadCode(address) {
  return read(address);
}

async function jobGoesOn() {
  if (!job) return false;
  try {
    run = JSON.parse(await read(`kopt://jobs/${job}/result`)).run ?? run;
  } catch (error) {
    if (error.code === NOT_YET) return true; // any other: it was cancelled, failed or is gone
  }
  job = null;
  return false;
}

async function look() {
  clearTimeout(timer);
  const isWorking = (await jobGoesOn()) || isCalling;
  let goesOn = isWorking;
  try {
    if (run) {
      const page = JSON.parse(await read(`kopt://runs/${encodeURIComponent(run)}/page`));
      for (const [name, html] of Object.entries(page.parts)) replace(name, html);
      goesOn = goesOn || page.is_running;
      connection.textContent = `${run}: ${goesOn ? "live" : "as it stands"}`;
    }
  } catch (error) {
    const why = `not available: ${error.message}`;
    connection.textContent = isWorking ? "the step is still running" : why;
  }
  if (goesOn) timer = setTimeout(look, POLL_MS);
}

const HEARD = {
  "ui/notifications/tool-input": (params) => {
    run = params.arguments?.run_id || run;
    isCalling = true;
    look();
  },
  "ui/notifications/tool-result": (params) => {
    const facts = params.structuredContent ?? {};
    run = facts.run_id ?? run;
    job = ["queued", "running"].includes(facts.status) ? facts.job_id : null;
    isCalling = false;
    if (!run && !job) connection.textContent = "this call began no run";
    look();
  },
  "ui/notifications/tool-cancelled": () => {
    isCalling = false;
    look();
  },
  "ui/notifications/host-context-changed": takeContext,
};

function takeContext(context) {
  if (context?.theme) document.documentElement.style.colorScheme = context.theme;
}

function answer({ id, method }) {
  if (method === "ui/resource-teardown") {
    clearTimeout(timer);
    isCalling = false;
  } else if (method !== "ping") {
    send({ id, error: { code: -32601, message: `this view has no ${method}` } });
    return;
  }
  send({ id, result: {} });
}

window.addEventListener("message", (event) => {
  const message = event.data;
  if (event.source !== window.parent || message?.jsonrpc !== "2.0") return;
  if (message.method === undefined) {
    const waiting = asked.get(message.id);
    asked.delete(message.id);
    if (message.error) waiting?.reject(Object.assign(new Error(), message.error));
    else waiting?.resolve(message.result);
  } else if (message.id === undefined) {
    HEARD[message.method]?.(message.params ?? {});
  } else {
    answer(message);
  }
});

async function begin() {
  const appInfo = { name: "kopt", version: document.querySelector("main").dataset.version };
  const appCapabilities = { availableDisplayModes: ["inline", "fullscreen"] };
  const host = await request("ui/initialize", { protocolVersion: PROTOCOL, appInfo, appCapabilities });
  takeContext(host.hostContext);
  send({ method: "ui/notifications/initialized", params: {} });
  new ResizeObserver(() => {
    const { scrollWidth: width, scrollHeight: height } = document.documentElement;
    send({ method: "ui/notifications/size-changed", params: { width, height } });
  }).observe(document.body);
}

begin().catch((error) => {
  connection.textContent = `the client shows no view: ${error.message}`;
});
