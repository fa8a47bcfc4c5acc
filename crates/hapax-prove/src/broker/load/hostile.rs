//! Clients that mean harm or know no better: batches that are not what they say, batches that inflate, readers that do not read.
//!
//! Invariant: what they send to the ledger must be refused, each kind with the code that it has in every store. Not here: what the
//! broker's memory may be meanwhile (`hostile` of the stories).

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bytes::{Bytes, BytesMut};
use hapax_kafka::batch::{BatchHeader, NewRecord, encode, seal};
use hapax_kafka::{Acks, Client, produce_request};
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::{ApiKey, FetchRequest, ProduceRequest, TopicName};
use kafka_protocol::protocol::{Encodable as _, StrBytes};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::{FINISH, PARTITIONS, Pace, Shared, TOPIC, record};
use crate::broker::history::Name;

/// The topic that is asked for and not read.
const LARGE: &str = "large";
/// Its batches, of nearly a megabyte each.
const LARGE_BATCHES: usize = 32;
const MIB: usize = 1 << 20;
/// More than any batch may become.
const BOMB_BYTES: usize = 80 * MIB;
/// How many readers do not read: each asks for the whole large topic.
const SILENT: usize = 24;
/// How many clients send bombs, one to each partition at a time.
const BOMBERS: usize = 3;
const PAUSE: Duration = Duration::from_millis(50);
/// Where a batch has its attributes, its last offset and its records.
const ATTRIBUTES: std::ops::Range<usize> = 21..23;
const LAST_OFFSET: std::ops::Range<usize> = 23..27;
const COUNT: std::ops::Range<usize> = 57..61;
const RECORDS: usize = 61;
const GZIP: i16 = 1;

/// What is wrong with a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Wrong {
    /// Its records are no stream of its compression.
    Stream,
    /// It has fewer records than it says.
    Fewer,
    /// It has more.
    More,
    /// It is of tomorrow.
    Future,
    /// Its checksum is another's.
    Checksum,
    /// It becomes larger than anybody may ask for.
    Bomb,
}

impl Wrong {
    const ALL: [Self; 6] = [Self::Stream, Self::Fewer, Self::More, Self::Future, Self::Checksum, Self::Bomb];

    /// What every store answers, as Kafka does.
    const fn code(self) -> ResponseError {
        match self {
            Self::Stream => ResponseError::UnknownServerError,
            Self::Fewer | Self::More => ResponseError::InvalidRecord,
            Self::Future => ResponseError::InvalidTimestamp,
            Self::Checksum => ResponseError::CorruptMessage,
            Self::Bomb => ResponseError::MessageTooLarge,
        }
    }
}

/// What has been seen of them.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// How many batches of each kind were answered.
    answered: [AtomicU32; Wrong::ALL.len()],
    /// Of which kinds a wrong answer was told, a bit each.
    told: AtomicU32,
    /// Answers that had begun and were not read.
    unread: AtomicU32,
}

/// A batch of three records with this compression, which is none yet.
fn plain(attributes: i16, later: i64, random: &mut fastrand::Rng) -> BytesMut {
    let named = |number| record(Name { process: 0, number }, 60 + random.usize(0..200));
    let mut records: Vec<NewRecord> = (0..3).map(named).collect();
    records.iter_mut().for_each(|record| record.timestamp += later);
    BytesMut::from(&encode(BatchHeader { attributes, ..BatchHeader::PLAIN }, &records)[..])
}

/// The same header over other bytes of records.
fn with_records(batch: &[u8], records: &[u8]) -> BytesMut {
    let mut out = BytesMut::from(&batch[..RECORDS]);
    out.extend_from_slice(records);
    let length = i32::try_from(out.len() - 12).unwrap_or(i32::MAX);
    out[8..12].copy_from_slice(&length.to_be_bytes());
    out
}

fn gzip(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

fn zipped(batch: &[u8]) -> anyhow::Result<BytesMut> {
    Ok(with_records(batch, &gzip(&batch[RECORDS..])?))
}

/// A batch with this fault.
fn make(wrong: Wrong, random: &mut fastrand::Rng) -> anyhow::Result<Bytes> {
    let mut batch = match wrong {
        Wrong::Stream => {
            let batch = plain(random.i16(1..=4), 0, random);
            let noise: Vec<u8> = (0..random.usize(1..400)).map(|_| random.u8(0xa0..0xb0)).collect();
            with_records(&batch, &noise)
        }
        Wrong::Fewer | Wrong::More => {
            let mut batch = zipped(&plain(GZIP, 0, random))?;
            let count: i32 = if wrong == Wrong::Fewer { 4 } else { 2 };
            batch[COUNT].copy_from_slice(&count.to_be_bytes());
            batch[LAST_OFFSET].copy_from_slice(&(count - 1).to_be_bytes());
            batch
        }
        Wrong::Future => zipped(&plain(GZIP, 86_400_000, random))?,
        Wrong::Checksum => zipped(&plain(GZIP, 0, random))?,
        Wrong::Bomb => {
            let bomb = NewRecord::of(vec![0; BOMB_BYTES]).with_key("bomb");
            let batch = encode(BatchHeader::PLAIN, &[bomb]);
            let mut batch = zipped(&batch)?;
            batch[ATTRIBUTES].copy_from_slice(&GZIP.to_be_bytes());
            batch
        }
    };
    seal(&mut batch);
    if wrong == Wrong::Checksum {
        let last = batch.len() - 1;
        batch[last] ^= 0x55;
    }
    Ok(batch.freeze())
}

/// Sends batches that are not what they say until the run ends.
pub(super) async fn garbage(shared: Arc<Shared>, process: u32) {
    let mut client = shared.client(process, Duration::from_secs(20));
    let mut random = fastrand::Rng::with_seed(shared.seed ^ u64::from(process));
    while shared.pace() != Pace::Finish {
        for wrong in Wrong::ALL.into_iter().filter(|wrong| *wrong != Wrong::Bomb) {
            match make(wrong, &mut random) {
                Ok(batch) => send(&shared, &mut client, wrong, &batch, random.i32(0..PARTITIONS)).await,
                Err(error) => shared.give_up(format!("no garbage could be made: {error:#}")),
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Sends batches that inflate until the run ends.
pub(super) async fn bomber(shared: Arc<Shared>, process: u32, bomb: Bytes) {
    let mut client = shared.client(process, Duration::from_secs(60));
    while shared.pace() != Pace::Finish {
        for partition in 0..PARTITIONS {
            send(&shared, &mut client, Wrong::Bomb, &bomb, partition).await;
        }
        tokio::time::sleep(4 * PAUSE).await;
    }
}

/// One batch, and what must come of it. A broker that is away, or does not lead yet, says nothing about it.
async fn send(shared: &Shared, client: &mut Client, wrong: Wrong, batch: &Bytes, partition: i32) {
    let request = produce_request(TOPIC, partition, batch.clone(), Acks::All, Duration::from_secs(3));
    let Ok(answer) = client.at_leader::<ProduceRequest>((TOPIC, partition), 12, &request).await else {
        client.forget(TOPIC, partition);
        tokio::time::sleep(PAUSE).await;
        return;
    };
    let answers = answer.responses.iter().flat_map(|topic| &topic.partition_responses);
    let codes: Vec<i16> = answers.map(|answer| answer.error_code).collect();
    match codes[..] {
        [code] if code == wrong.code().code() => {}
        [code] if ResponseError::try_from_code(code).is_some_and(elsewhere) => {
            client.forget(TOPIC, partition);
            tokio::time::sleep(PAUSE).await;
            return;
        }
        _ => {
            let bit = 1 << wrong as u32;
            if shared.hostile.told.fetch_or(bit, Ordering::SeqCst) & bit == 0 {
                shared.give_up(format!("wrong {wrong:?} of a batch was answered {codes:?}, not {:?}", wrong.code()));
            }
        }
    }
    shared.hostile.answered[wrong as usize].fetch_add(1, Ordering::SeqCst);
}

fn elsewhere(code: ResponseError) -> bool {
    Client::is_elsewhere(code) || matches!(code, ResponseError::LeaderNotAvailable | ResponseError::RequestTimedOut)
}

/// Asks for much, reads nothing, goes away after a while and comes back, until the run ends.
pub(super) async fn silent(shared: Arc<Shared>, process: u32) {
    let mut random = fastrand::Rng::with_seed(shared.seed ^ u64::from(process));
    let address = shared.addresses.first().cloned().unwrap_or_default();
    while shared.pace() != Pace::Finish {
        let until = Instant::now() + Duration::from_millis(random.u64(3_000..9_000));
        if let Ok(stream) = ask(&address).await {
            let mut begun = false;
            while shared.pace() != Pace::Finish && Instant::now() < until {
                if begun {
                    tokio::time::sleep(PAUSE).await;
                } else if let Ok(Ok(())) = tokio::time::timeout(PAUSE, stream.readable()).await {
                    begun = true;
                    shared.hostile.unread.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// A connection with a request for all of the large topic under way.
async fn ask(address: &str) -> anyhow::Result<TcpStream> {
    const VERSION: i16 = 11;
    let limit = i32::try_from(51 * MIB).unwrap_or(i32::MAX);
    let partition = FetchPartition::default().with_fetch_offset(0).with_partition_max_bytes(limit);
    let name = TopicName(StrBytes::from_static_str(LARGE));
    let topic = FetchTopic::default().with_topic(name).with_partitions(vec![partition]);
    let request = FetchRequest::default().with_max_bytes(limit).with_min_bytes(1).with_max_wait_ms(500);
    let mut body = BytesMut::new();
    request.with_topics(vec![topic]).encode(&mut body, VERSION)?;
    // Key, version, number of the request, no client id.
    let mut head = BytesMut::new();
    for short in [ApiKey::Fetch as i16, VERSION, 0, 1, -1] {
        head.extend_from_slice(&short.to_be_bytes());
    }
    let mut stream = TcpStream::connect(address).await?;
    stream.write_u32(u32::try_from(head.len() + body.len())?).await?;
    stream.write_all(&head).await?;
    stream.write_all(&body).await?;
    Ok(stream)
}

/// Makes the large topic, and fills it.
pub(super) async fn fill(shared: &Shared) -> anyhow::Result<()> {
    let mut client = shared.client(0, FINISH);
    client.create_topic(LARGE, 1, &[]).await?;
    let mut value = vec![0; MIB - 200];
    fastrand::Rng::with_seed(shared.seed).fill(&mut value);
    let batch = encode(BatchHeader::PLAIN, &[NewRecord::of(value)]);
    for _ in 0..LARGE_BATCHES {
        let until = Instant::now() + FINISH;
        while let Err(error) = client.produce((LARGE, 0), batch.clone(), Acks::All).await {
            anyhow::ensure!(error.is_retriable() && Instant::now() < until, "a large batch was refused: {error}");
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(())
}

/// All of them come.
pub(super) fn come(
    shared: &Arc<Shared>,
    tasks: &mut tokio::task::JoinSet<()>,
    runtime: &tokio::runtime::Handle,
) -> anyhow::Result<()> {
    let bomb = make(Wrong::Bomb, &mut fastrand::Rng::with_seed(shared.seed)).context("no bomb")?;
    tasks.spawn_on(garbage(Arc::clone(shared), shared.process()), runtime);
    for _ in 0..BOMBERS {
        tasks.spawn_on(bomber(Arc::clone(shared), shared.process(), bomb.clone()), runtime);
    }
    for _ in 0..SILENT {
        tasks.spawn_on(silent(Arc::clone(shared), shared.process()), runtime);
    }
    Ok(())
}

/// Waits until each kind of batch has been answered so many more times, and as many answers were left unread.
pub(super) async fn wait(shared: &Shared, more: u32) -> anyhow::Result<()> {
    let (seen, until) = (&shared.hostile, Instant::now() + FINISH);
    let counts = || -> Vec<u32> {
        let answered = seen.answered.iter().map(|count| count.load(Ordering::SeqCst));
        answered.chain([seen.unread.load(Ordering::SeqCst)]).collect()
    };
    let before = counts();
    loop {
        let now = counts();
        if now.iter().zip(&before).all(|(now, before)| *now >= before + more) {
            return Ok(());
        }
        anyhow::ensure!(Instant::now() < until, "answered of each kind, and unread: first {before:?}, then {now:?}");
        tokio::time::sleep(PAUSE).await;
    }
}
