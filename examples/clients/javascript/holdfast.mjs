// Locks of a holdfast server. Copy this file; it needs Node 18 and no packages.
//
//   import { Client } from './holdfast.mjs'
//
//   const client = new Client('http://127.0.0.1:7420 http://127.0.0.1:7421')
//
//   await client.withLock('orders/42', { ttl: 30, wait: 60 }, async (lease) => {
//     for (const order of orders) {
//       lease.check()                                                    // throws Lost once the lease is lost
//       await book(order, { token: lease.token, signal: lease.signal })  // the resource refuses a late holder
//     }
//   })
//
// What is guaranteed, and the rules that this file keeps, are in docs/clients.md.

import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** No server has answered in time, so what was asked for may have been done or not. */
export class Unavailable extends Error {}

/** A server has refused. `code` is for programs, the text for people. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? `status ${status}`)
    Object.assign(this, { name: this.constructor.name, status, code: body.code ?? '', body })
  }
}

/** Somebody else has the lock; body.holders says who. */
export class Held extends Problem {}

/** Somebody else is doing the do-once work. */
export class InProgress extends Held {}

/** We had the lease and no longer do. */
export class Lost extends Problem {}

const kinds = { 'lock-held': Held, 'in-progress': InProgress, lost: Lost, broken: Lost, released: Lost }
const again = [429, 502, 503, 504] // the same request may succeed, here or at another server
const newKey = () => randomBytes(16).toString('hex')
const now = () => performance.now() / 1000 // seconds of a clock that nobody sets

/** The TTL as requests have it, which is refused if it is of another unit. */
function milliseconds(ttl) {
  if (!(ttl >= 1 && ttl <= 3600)) {
    throw new RangeError(`ttl: ${ttl}: want seconds, from 1 to 3600; a lease is renewed for as long as the work takes`)
  }
  return Math.trunc(ttl * 1000)
}

/** Whether a server has refused the connection, and so has heard of no request. */
const refuses = ({ cause = {} }) => ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'bad port'].includes((cause.errors?.[0] ?? cause).code ?? cause.message)

/**
 * A client of the servers of one store, each of which answers for every lease. `urls` has
 * their URLs, with spaces between them. Others see the holder as `holder` says: { host, pid,
 * program, label }.
 */
export class Client {
  #urls
  #at = 0 // the server that is asked first
  #reached = false // a server has taken a request
  #headers = { 'Content-Type': 'application/json' }
  #holder

  constructor(urls, token, holder = { host: hostname(), pid: process.pid, program: basename(process.argv[1] ?? 'node') }) {
    this.#urls = String(urls).trim().split(/\s+/).map((url) => url.replace(/\/$/, ''))
    for (const url of this.#urls) {
      if (!/^https?:\/\/[^/]/.test(url)) throw new TypeError(`"${url}" is not a URL of a holdfast server: want http://HOST:PORT`)
    }
    if (token) this.#headers.Authorization = `Bearer ${token}`
    this.#holder = holder
  }

  /**
   * Take the lock, and keep it until the lease is released, or lost. Waits in the queue
   * for `wait` seconds, then throws Held. `more` are further fields of the request, such
   * as mode: 'shared', reason: 'nightly' or min_token: 7.
   */
  async lock(name, { ttl = 30, wait = 0, ...more } = {}) {
    const key = newKey()
    try {
      const { before, answer } = await this.#turn('/v1/leases', { name, ...more }, key, ttl, wait)
      return new Lease(this, answer, before)
    } catch (failed) {
      await this.#cancel(name, key)
      throw failed
    }
  }

  /**
   * Do work unless that was done under this key, and return its result, which is whatever
   * JSON can say, either way. If the work throws, the next caller does it. Waits for `wait`
   * seconds for somebody else who does it now, then throws Held.
   */
  async once(key, { ttl = 30, wait = 0, retention = 86400, ...more }, work) {
    const path = `/v1/once/${encodeURIComponent(key)}`
    const { before, status, answer } = await this.#turn(path, more, newKey(), ttl, wait)
    if (status === 200) return answer.result
    const lease = new Lease(this, answer, before)
    try {
      const result = await work(lease)
      lease.check()
      await this.ask('PUT', `${path}/result`, { lease_id: lease.id, result, retention_ms: retention * 1000 })
      return result
    } catch (failed) {
      await this.ask('POST', `${path}/fail`, { lease_id: lease.id }, { within: 2 }).catch(() => {}) // it ends by itself
      throw failed
    } finally {
      lease.leave()
    }
  }

  /** Ask for a lease until there is an answer, and wait for `wait` seconds in the queue. */
  async #turn(path, body, key, ttl, wait) {
    const ttlMs = milliseconds(ttl)
    const until = now() + wait
    for (;;) {
      // A short wait at a time: the deadline counts from before the request.
      const left = Math.max(0, until - now())
      const piece = Math.min(left, ttl / 3)
      const times = { ttl_ms: ttlMs, wait_ms: Math.trunc(piece * 1000) }
      const answered = await this.ask('POST', path, { holder: this.#holder, ...body, ...times }, { key, within: piece + 15, patience: piece + 5, comesBack: piece < left })
      if (answered.status !== 202) return answered
      // We have a place in the queue, which the next request with this key keeps.
    }
  }

  /** Leave the queue, and give back what may have been granted without our knowing. */
  async #cancel(name, key) {
    if (!this.#reached) return
    try {
      await this.ask('POST', '/v1/leases/release', { name }, { key, within: 2 })
    } catch { /* it ends by itself */ }
  }

  /** Do work under the lock, and return what it returns. See Lease for how it hears of a loss. */
  async withLock(name, options, work) {
    const lease = await this.lock(name, options)
    let result
    try {
      result = await work(lease)
    } catch (failed) {
      await lease.release().catch(() => {}) // what the work has thrown says more
      throw failed
    }
    await lease.release()
    return result
  }

  /**
   * Ask one server after the other for `within` seconds, and return when the request was
   * sent that was answered, the status, and the answer. Each request may be repeated: the
   * servers know it by the lease ID, or by its key. If all refuse the connection, and none
   * has ever taken a request, that is an error at once: most likely a URL is wrong.
   */
  async ask(method, path, body, { key, within = 15, patience = 5, comesBack = false } = {}) {
    const headers = key ? { ...this.#headers, 'Idempotency-Key': key } : { ...this.#headers }
    if (comesBack) headers.Prefer = 'respond-async' // else a wait that ends without the lock leaves no place in the queue
    const until = now() + within
    let refusals = 0
    for (let pause = 0.05; ; pause = Math.min(2 * pause, 1)) {
      const at = this.#at
      const before = now()
      let why
      try {
        const signal = AbortSignal.timeout(Math.ceil(Math.max(10, Math.min(patience, until - before) * 1000)))
        const response = await fetch(this.#urls[at] + path, { method, headers, body: body && JSON.stringify(body), signal })
        this.#reached = true
        const text = await response.text()
        if (response.ok) return { before, status: response.status, answer: text && JSON.parse(text) }
        why = problem(response.status, text)
      } catch (failed) {
        why = failed
        if (refuses(failed)) refusals++
        else this.#reached = true
      }
      if (why instanceof Problem && !again.includes(why.status)) throw why
      if (this.#at === at) this.#at = (at + 1) % this.#urls.length // or another request has moved on already
      if (now() + pause >= until || !this.#reached && refusals >= this.#urls.length) throw this.#nobody(path, why)
      await sleep(pause * 1000)
    }
  }

  #nobody(path, { message, cause }) {
    return new Unavailable(`no server has answered ${path}: ${cause?.code ?? cause?.message ?? message}; asked: ${this.#urls.join(' ')}`)
  }
}

function problem(status, text) {
  let body = {}
  try { body = JSON.parse(text) } catch { /* from a proxy */ }
  return new (kinds[body.code] ?? Problem)(status, body)
}

/** A lock that is held. It is renewed in the background. */
export class Lease {
  #client
  #ttl
  #deadline
  #lost = new AbortController()
  #timers = []

  constructor(client, answer, before) {
    Object.assign(this, { name: answer.name, id: answer.lease_id, token: answer.fencing_token })
    this.#client = client
    this.#ttl = answer.ttl_ms / 1000
    this.#trusted(before, answer)
    this.#renewLater()
  }

  /** Is aborted when the lease is lost, before another can have it. Pass it on to what you call. */
  get signal() { return this.#lost.signal }

  // From before the request was sent, so that the store counts longer than we do. A tenth
  // is for clocks that are slewed, and a twentieth for work to stop in.
  #trusted(before, answer) {
    this.#deadline = before + answer.expires_in_ms / 1000 * 0.85
    clearTimeout(this.#timers[0])
    this.#timers[0] = setTimeout(() => this.#lose(), (this.#deadline - now()) * 1000)
  }

  #renewLater() {
    this.#timers[1] = setTimeout(() => this.#renew(), this.#ttl * 1000 / 3)
  }

  async #renew() {
    const body = { name: this.name, lease_id: this.id, fencing_token: this.token, ttl_ms: this.#ttl * 1000 }
    try {
      const { before, answer } = await this.#client.ask('POST', '/v1/leases/renew', body, { within: this.#deadline - now(), patience: this.#ttl / 6 })
      if (this.#timers) this.#trusted(before, answer)
    } catch (failed) {
      if (failed instanceof Lost) this.#lose()
    }
    if (this.#timers) this.#renewLater() // a failure is not a loss until the deadline
  }

  #lose() {
    if (this.#end()) this.#lost.abort(new Lost(410, { code: 'lost', detail: `the lease of "${this.name}" is lost` }))
  }

  /** Stop renewing the lease, and leave it as it is. */
  leave() { this.#end() }

  #end() {
    const timers = this.#timers
    this.#timers = null
    timers?.forEach(clearTimeout)
    return timers !== null
  }

  /** Throw Lost if the lease is lost, even if this process was too busy to hear of it. */
  check() {
    if (this.#timers && now() >= this.#deadline) this.#lose()
    this.signal.throwIfAborted()
  }

  /**
   * Run a command under the lease, with the token in its environment, and return its
   * status. When the lease is lost, it is stopped before another can have the lock.
   */
  async run(command, args, options = {}) {
    const env = { ...process.env, ...options.env, HOLDFAST_NAME: this.name, HOLDFAST_FENCING_TOKEN: String(this.token) }
    const job = spawn(command, args, { stdio: 'inherit', ...options, env, detached: true })
    const kill = (signal) => { try { process.kill(-job.pid, signal) } catch { /* it has ended */ } }
    let killing
    const stop = () => {
      kill('SIGTERM')
      killing = setTimeout(() => kill('SIGKILL'), this.#ttl * 1000 / 20)
    }
    this.signal.addEventListener('abort', stop)
    const status = await new Promise((resolve, reject) => job.on('error', reject).on('exit', resolve))
    this.signal.removeEventListener('abort', stop)
    clearTimeout(killing)
    this.check()
    return status
  }

  /** Give the lock back. Throws Lost if it was lost before. */
  async release() {
    this.check()
    if (!this.#end()) return
    try {
      await this.#client.ask('POST', '/v1/leases/release', { name: this.name, lease_id: this.id }, { within: this.#deadline - now() })
    } catch (failed) {
      if (!(failed instanceof Unavailable)) throw failed // else it ends by itself
    }
  }
}
