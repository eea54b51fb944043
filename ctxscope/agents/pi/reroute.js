// An extension of pi: sends its model calls by way of ctxscope's recording proxy.
//
// Base URLs stay what they are for all of pi's own rules (message threads, cache keys, headers that name the caller);
// only the address that is dialled differs. `fetch` and `WebSocket` of this one process are wrapped, nothing else.
// CTXSCOPE_ROUTES is an object from origin to the address that leads there; it is taken from the environment so that
// the agent's tools see the one they always had, and kept because /reload runs this file again.

const TOKENS = /\/(oauth2?|auth|token|login)(\/|$)/;
const KEPT = Symbol.for("ctxscope.routes");
const WRAPPED = Symbol.for("ctxscope.wrapped");

function routes() {
  if (globalThis[KEPT] === undefined) {
    globalThis[KEPT] = JSON.parse(process.env.CTXSCOPE_ROUTES ?? "{}");
    delete process.env.CTXSCOPE_ROUTES;
  }
  return globalThis[KEPT];
}

function rerouted(address) {
  let url;
  try {
    url = new URL(address);
  } catch {
    return undefined;
  }
  const socket = url.protocol === "wss:" || url.protocol === "ws:";
  const origin = socket ? url.origin.replace(/^ws/, "http") : url.origin;
  const through = routes()[origin];
  if (through === undefined || TOKENS.test(url.pathname)) return undefined; // what gives out tokens is not for a recording
  const rest = url.href.slice(url.href.indexOf("/", url.protocol.length + 2)) || "/";
  return (socket ? through.replace(/^http/, "ws") : through) + rest;
}

function wrapFetch() {
  const original = globalThis.fetch;
  if (original[WRAPPED]) return;
  const fetch = function (input, init) {
    const asked = input !== null && typeof input === "object" && typeof input.url === "string";
    const address = rerouted(asked ? input.url : input);
    if (address === undefined) return original.call(this, input, init);
    return original.call(this, asked ? new input.constructor(address, input) : address, init);
  };
  fetch[WRAPPED] = true;
  globalThis.fetch = fetch;
}

function wrapWebSocket() {
  const Original = globalThis.WebSocket;
  if (typeof Original !== "function" || Original[WRAPPED]) return;
  globalThis.WebSocket = class WebSocket extends Original {
    constructor(address, options) {
      super(rerouted(address) ?? address, options);
    }
  };
  globalThis.WebSocket[WRAPPED] = true;
}

export default function () {
  routes();
  wrapFetch();
  wrapWebSocket();
}
