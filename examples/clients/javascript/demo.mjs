// What holdfast.mjs can do: node demo.mjs URL[,URL...] COMMAND ARG...

import { readFile, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, Problem, Unavailable } from './holdfast.mjs'

const commands = {
  /** Add 1 to the number in a file, as others do at the same time. */
  async count(client, name, file, times) {
    for (let i = 0; i < times; i++) {
      await client.withLock(name, { ttl: 10, wait: 60 }, async (lease) => {
        const n = Number(await readFile(file, 'utf8'))
        await sleep(2) // for anybody else to read the same number
        lease.check()
        await writeFile(file, String(n + 1))
      })
    }
  },

  /** Hold a lock until the input ends. */
  async hold(client, name, ttl) {
    await client.withLock(name, { ttl: Number(ttl), wait: 60 }, async (lease) => {
      console.log('acquired', lease.token)
      await new Promise((resolve, reject) => {
        process.stdin.resume().on('end', resolve)
        lease.signal.addEventListener('abort', () => reject(lease.signal.reason))
      })
    })
    console.log('released')
  },

  /** Run a command under a lock. */
  async run(client, name, ttl, command, ...args) {
    process.exitCode = await client.withLock(name, { ttl: Number(ttl), wait: 60 }, (lease) => lease.run(command, args))
  },

  /** Do work once, whoever else does it too. */
  async once(client, key, value) {
    const result = await client.once(key, { wait: 60 }, (lease) => {
      console.log('working', lease.token)
      return { value }
    })
    console.log('result', result.value)
  },

  /** Take a lock if it is free. */
  async take(client, name) {
    await client.withLock(name, {}, (lease) => console.log('acquired', lease.token))
  },
}

const [urls, command, ...args] = process.argv.slice(2)
const client = new Client(urls.replaceAll(',', ' '), process.env.HOLDFAST_TOKEN)
try {
  await commands[command](client, ...args)
} catch (failed) {
  if (!(failed instanceof Problem || failed instanceof Unavailable)) throw failed
  console.error(failed.code ?? 'unavailable')
  process.exit(1)
}
