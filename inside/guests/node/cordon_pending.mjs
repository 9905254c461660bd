// cordon_pending.mjs - what would still call back, and whether the running execution made it.
//
// Usually everything that is pending is the running execution's: one that succeeds waits for all of it. What failed or
// was interrupted can leave timers and handles behind. Only while there are such leftovers, async_hooks tell what the
// running execution makes, directly or in its callbacks. Hooks make each await slower, so they are off otherwise.
import { createHook, executionAsyncResource } from 'node:async_hooks';

// A pipe for stdio alone must not keep the event loop alive.
const PASSIVE = new Set(['PipeWrap', 'TTYWrap', 'Pipe', 'FSReqCallback', 'SignalWrap', 'CloseReq', 'MessagePort']);
const PASSIVE_HOOKED = new Set([...PASSIVE, 'Worker'].map((name) => name.toUpperCase())); // as async_hooks call them

let hasLeftovers = false;
let own = new WeakSet(); // what the running execution made, and the contexts that its callbacks run in
let made = new Set(); // those of them that can keep the event loop alive
let pruneAt = 0;

const isAlive = (r) => !r._destroyed && r.hasRef();

function prune() {
  for (const r of made) if (!isAlive(r)) made.delete(r);
  pruneAt = 2 * made.size + 1024;
}

const hook = createHook({ init(_id, type, _trigger, resource) {
  if (!own.has(executionAsyncResource())) return;
  own.add(resource);
  if (PASSIVE_HOOKED.has(type) || typeof resource.hasRef !== 'function') return;
  made.add(resource);
  if (made.size > pruneAt) prune();
} });

const isAnyPending = () => process.getActiveResourcesInfo().some((kind) => !PASSIVE.has(kind));

/** The execution that begins here, in a callback of its own, makes what is made from now on. */
export function beginOwn() {
  own = new WeakSet([executionAsyncResource()]);
  made = new Set();
  pruneAt = 1024;
  hasLeftovers = isAnyPending();
  if (hasLeftovers) hook.enable();
  else hook.disable();
}

/** Whether something that the running execution made would still call back. */
export function isOwnPending() {
  if (!hasLeftovers) return isAnyPending();
  return [...made].some(isAlive) || process._getActiveRequests().some((r) => own.has(r) && !PASSIVE.has(r.constructor?.name));
}

/** Whether a callback of an earlier execution runs. */
export const isForeign = () => hasLeftovers && !own.has(executionAsyncResource());

/** Code was ended where it was, so Node's stack of contexts has more on it than runs. Where hooks are on, the process
 *  would not survive that. Node empties the stack after an exception that is caught nowhere, so this pretends one. */
export function emptyStack() {
  try {
    process.setUncaughtExceptionCaptureCallback(() => {});
  } catch {
    return; // the code has set one, or uses domains
  }
  process._fatalException(new Error('interrupted'), false);
  process.setUncaughtExceptionCaptureCallback(null);
}
