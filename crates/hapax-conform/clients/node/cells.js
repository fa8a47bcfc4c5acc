// kafkajs: every cell. Called as: BOOTSTRAP FLAKY PREFIX CELL...; FLAKY is the same broker behind a proxy that loses
// answers. Prints one line per cell. The codecs but gzip are plug-ins, as kafkajs's own manual shows.
const assert = require('assert')
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel } = require('kafkajs')
const lz4 = require('lz4js')
const { hash } = require('lz4js/xxh32.js')
const zstd = require('@bokuweb/zstd-wasm')

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async encoder => independent(Buffer.from(lz4.compress(encoder.buffer))),
  decompress: async buffer => Buffer.from(lz4.decompress(buffer)),
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => Buffer.from(zstd.compress(encoder.buffer)),
  decompress: async buffer => Buffer.from(zstd.decompress(buffer)),
})

// Kafka takes no linked blocks, and this codec never says that its one block stands alone.
function independent(frame) {
  frame[4] |= 0x20
  frame[6] = (hash(0, frame, 4, 2) >> 8) & 0xff
  return frame
}

const RECORDS = 600
const DEADLINE = 300_000
const CODECS = { none: 'None', gzip: 'GZIP', snappy: 'Snappy', lz4: 'LZ4', zstd: 'ZSTD' }
const payload = number => `value ${String(number).padStart(5, '0')} `.repeat(8)
const sleep = time => new Promise(resolve => setTimeout(resolve, time))

async function until(what, condition) {
  for (const end = Date.now() + DEADLINE; !(await condition()); await sleep(10)) {
    assert(Date.now() < end, `timed out: ${what}`)
  }
}

async function create(kafka, topic, numPartitions) {
  const admin = kafka.admin()
  await admin.connect()
  assert(await admin.createTopics({ topics: [{ topic, numPartitions, replicationFactor: 1 }] }), 'the topic is there already')
  return admin
}

async function produce(kafka, topic, from, upto, settings = {}, batch = 100, compression = 0) {
  const producer = kafka.producer(settings)
  await producer.connect()
  for (let start = from; start < upto; start += batch) {
    const numbers = Array.from({ length: Math.min(batch, upto - start) }, (_, at) => start + at)
    const messages = numbers.map(n => ({ key: `${n}`, value: payload(n), headers: { n: `h${n}` } }))
    await producer.send({ topic, messages, compression, acks: -1 })
  }
  await producer.disconnect()
}

// Reads the topic to its end: each record once, in order, with all its parts.
async function verify(kafka, admin, topic) {
  const ends = await admin.fetchTopicOffsets(topic)
  assert.strictEqual(ends.reduce((sum, end) => sum + Number(end.high), 0), RECORDS, 'the log holds another count')
  const numbers = new Set()
  const last = {}
  let problem
  const consumer = kafka.consumer({ groupId: `${topic}-reader` })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    eachMessage: async ({ partition, message }) => {
      try {
        const number = Number(message.key)
        assert.strictEqual(message.value.toString(), payload(number))
        assert.strictEqual(message.headers.n.toString(), `h${number}`)
        const before = last[partition] ?? [-1, -1]
        assert(Number(message.offset) === before[0] + 1 && number > before[1], `order at ${partition}:${message.offset}`)
        last[partition] = [Number(message.offset), number]
        assert(!numbers.has(number), `${number} is there twice`)
        numbers.add(number)
      } catch (error) {
        problem ??= error
      }
    },
  })
  await until('all is read', () => problem || numbers.size === RECORDS)
  await consumer.disconnect()
  if (problem) throw problem
}

async function compression(kafka, topic, codec) {
  const admin = await create(kafka, topic, 2)
  await produce(kafka, topic, 0, RECORDS, {}, 200, CompressionTypes[CODECS[codec]])
  await verify(kafka, admin, topic)
  await admin.disconnect()
  return `${RECORDS} records`
}

async function idempotent(kafka, topic) {
  const admin = await create(kafka, topic, 2)
  const settings = { idempotent: true, maxInFlightRequests: 1, retry: { initialRetryTime: 50, retries: 50 } }
  await produce(kafka, topic, 0, RECORDS, settings, 20)
  await verify(kafka, admin, topic)
  await admin.disconnect()
  return `${RECORDS} records, each once though answers were lost`
}

// One member: a batch is done when its offset is committed.
async function join(kafka, topic, done) {
  const consumer = kafka.consumer({ groupId: topic, sessionTimeout: 45_000, heartbeatInterval: 500 })
  const member = { assigned: 0, leave: () => consumer.disconnect() }
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    member.assigned = (payload.memberAssignment[topic] ?? []).length
  })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachBatch: async ({ batch, isRunning, isStale }) => {
      if (!isRunning() || isStale()) return
      const { partition } = batch
      await consumer.commitOffsets([{ topic, partition, offset: `${Number(batch.lastOffset()) + 1}` }])
      for (const message of batch.messages) done.push(`${partition}:${message.offset}`)
    },
  })
  return member
}

async function group(kafka, topic) {
  const admin = await create(kafka, topic, 4)
  const [third, done] = [300, []]
  const seen = () => new Set(done).size
  const first = await join(kafka, topic, done)
  await produce(kafka, topic, 0, third)
  await until('the first member reads', () => seen() >= third)
  const second = await join(kafka, topic, done)
  await produce(kafka, topic, third, 2 * third)
  await until('two members share', () => first.assigned === 2 && second.assigned === 2)
  await until('two members read', () => seen() >= 2 * third)
  const last = await join(kafka, topic, done)
  await first.leave()
  await produce(kafka, topic, 2 * third, 3 * third)
  await until('the others take over', () => seen() >= 3 * third)
  await second.leave()
  await last.leave()
  const [{ partitions }] = await admin.fetchOffsets({ groupId: topic, topics: [topic] })
  assert.strictEqual(partitions.reduce((sum, { offset }) => sum + Number(offset), 0), 3 * third, 'committed')
  await admin.deleteGroups([topic])
  await admin.disconnect()
  // A batch that a rebalance overtakes is read again by its next owner: at least once is what it promises.
  assert.strictEqual(seen(), 3 * third)
  return `${3 * third} records, none lost, all committed, 3 members`
}

async function adminCell(kafka, topic) {
  const admin = await create(kafka, topic, 2)
  await until('the topic is listed', async () => (await admin.listTopics()).includes(topic))
  await admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] })
  const count = async () => (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length
  await until('three partitions', async () => (await count()) === 3)
  const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
  const configEntries = [{ name: 'retention.ms', value: '1234567' }]
  await admin.alterConfigs({ resources: [{ ...resource, configEntries }] })
  const config = async name => {
    const described = await admin.describeConfigs({ resources: [{ ...resource, configNames: [name] }] })
    return described.resources[0].configEntries[0].configValue
  }
  await until('the changed configuration', async () => (await config('retention.ms')) === '1234567')
  assert.strictEqual(await config('cleanup.policy'), 'delete')
  assert((await admin.describeCluster()).controller !== null, 'no controller')
  assert(!(await admin.createTopics({ topics: [{ topic, numPartitions: 1 }] })), 'the topic was created twice')
  await admin.deleteTopics({ topics: [topic] })
  await until('the topic is gone', async () => !(await admin.listTopics()).includes(topic))
  await admin.disconnect()
  return 'create, list, describe, grow, alter config, delete'
}

async function seekByTime(kafka, topic) {
  const admin = await create(kafka, topic, 1)
  const start = 1_700_000_000_000
  const producer = kafka.producer()
  await producer.connect()
  const messages = Array.from({ length: 100 }, (_, n) => ({ value: `${n}`, timestamp: `${start + n * 1000}` }))
  await producer.send({ topic, messages })
  await producer.disconnect()
  for (const [asked, expected] of [[0, 0], [41_500, 42], [42_000, 42], [-5, 0], [1_000_000, 100]]) {
    const [found] = await admin.fetchTopicOffsetsByTimestamp(topic, start + asked)
    assert.strictEqual(Number(found.offset), expected, `${asked}: ${found.offset}`)
  }
  const consumer = kafka.consumer({ groupId: `${topic}-reader` })
  let first
  await consumer.connect()
  await consumer.subscribe({ topic })
  await consumer.run({ autoCommit: false, eachMessage: async ({ message }) => { first ??= message } })
  consumer.seek({ topic, partition: 0, offset: '42' })
  await until('a record', () => first)
  await consumer.disconnect()
  await admin.disconnect()
  assert.deepStrictEqual([first.value.toString(), first.timestamp], ['42', `${start + 42_000}`])
  return 'offsets of five times, and a read from there'
}

async function main([bootstrap, flaky, prefix, ...cells]) {
  await zstd.init()
  const others = { idempotent, group, admin: adminCell, time: seekByTime }
  for (const cell of cells) {
    const brokers = [cell === 'idempotent' ? flaky : bootstrap]
    const retry = { initialRetryTime: 50 }
    const kafka = new Kafka({ brokers, logLevel: logLevel.NOTHING, retry })
    try {
      const run = others[cell] ?? ((kafka, topic) => compression(kafka, topic, cell))
      console.log(`${cell} pass ${await run(kafka, `${prefix}-${cell}`)}`)
    } catch (error) {
      console.error(error)
      console.log(`${cell} fail ${String(error).replaceAll('\n', ' ')}`)
    }
  }
  process.exit(0)
}

process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1'
main(process.argv.slice(2))
