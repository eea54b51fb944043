// An extension of omp: pi's (which see) sends model calls by way of ctxscope's recording proxy and leaves base URLs alone.
//
// Anthropic's own API omp calls through node:https, past `fetch`, unless its environment names a proxy for it when the
// first such call is made. So one that does not exist is named until then, and taken off every call; one of the user's
// own is taken off those that go to ctxscope. Tools never see it: their environment is copied once, which is made to
// happen before, and where it cannot be, the name stands from a turn's start to its first call only.

import reroute from "../pi/reroute.js";

const KEPT = Symbol.for("ctxscope.routes");
const WRAPPED = Symbol.for("ctxscope.wrapped");
const VARIABLE = "PI_PROXY_ANTHROPIC";
const NOWHERE = "http://ctxscope.invalid";

let isLearnt = false;

function name() {
  if (!isLearnt && !process.env.PI_PROXY) process.env[VARIABLE] ||= NOWHERE;
}

function unname() {
  if (process.env[VARIABLE] === NOWHERE) delete process.env[VARIABLE];
}

function toolsHaveTheirs(omp) {
  try {
    return typeof omp.pi.settings.getShellConfig().env === "object";
  } catch {
    return false;
  }
}

function isRouted(input) {
  try {
    const address = typeof input === "string" ? input : (input.url ?? input.href);
    return new URL(address).origin in globalThis[KEPT];
  } catch {
    return false;
  }
}

export default function (omp) {
  const before = globalThis.fetch;
  reroute(omp);
  const inner = globalThis.fetch;
  if (inner === before) return;
  const fetch = function (input, init) {
    if (init?.proxy === NOWHERE) {
      isLearnt = true;
      unname();
    }
    const straight = init?.proxy === NOWHERE || (init?.proxy && isRouted(input));
    return inner.call(this, input, straight ? { ...init, proxy: undefined } : init);
  };
  fetch[WRAPPED] = true;
  fetch.preconnect = before.preconnect;
  globalThis.fetch = fetch;
  if (toolsHaveTheirs(omp)) name();
  omp.on("turn_start", name);
  omp.on("tool_call", unname);
  omp.on("user_bash", unname);
  omp.on("user_python", unname);
}
