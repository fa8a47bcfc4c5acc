//! What every [`Source`] must do, as tests over a factory.
//!
//! The factory makes a fresh source over data that stays as it is: at least three inputs, with an end under
//! [`Follow::No`]. Each function is one clause of the trait's doc; [`every_clause`] runs them all.

use std::time::Duration;

use hapax_model::position::{Bookmark, Incarnation, Position};

use crate::batch::Inputs;
use crate::source::{Follow, Held, Polled, Room, Source, SourceError, StartAt};

/// Room for everything.
const LARGE: Room = Room { events: 1_000_000, bytes: 64 * 1024 * 1024 };
/// Rooms in which the same inputs come in other batches.
const ROOMS: [Room; 4] = [
    LARGE,
    Room { events: 1, bytes: 1024 * 1024 },
    Room { events: 3, bytes: 1024 * 1024 },
    Room { events: 1000, bytes: 1 },
];
/// A source that has an end reaches it within so many idle polls in a row.
const IDLE_MAX: usize = 200;

/// One input, with the incarnation that gives its position a meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// Which incarnation it was read from.
    pub incarnation: u32,
    /// Where it was.
    pub position: Position,
    /// Its bytes (the beginning, if it was oversized).
    pub bytes: Vec<u8>,
    /// Its full length, if it was oversized.
    pub oversized: Option<u64>,
}

/// What was read between two bookmarks.
#[derive(Debug)]
struct Step {
    inputs: Vec<Read>,
    after: Bookmark,
}

/// All clauses.
pub async fn every_clause<S: Source>(make: impl Fn() -> S) {
    the_start_is_earliest_latest_or_named(&make).await;
    replay_from_any_bookmark_gives_the_same_inputs(&make).await;
    a_poll_keeps_within_its_room(&make).await;
    the_bookmark_passes_only_what_was_handed_out(&make).await;
    own_bookmarks_are_held(&make).await;
    the_range_up_to_an_own_bookmark_is_held(&make).await;
    another_incarnation_is_not_held(&make).await;
    an_ack_changes_nothing_that_is_read(&make).await;
    a_poll_that_is_dropped_loses_nothing(&make).await;
}

/// Goal: a delivery without progress begins where it was told. Method: earliest reads all, latest nothing, and a
/// named position what lies behind it.
pub async fn the_start_is_earliest_latest_or_named<S: Source>(make: &impl Fn() -> S) {
    let all = read_all(make).await;
    assert!(all.len() >= 3, "the factory gives at least three inputs, not {}", all.len());
    let latest = make().start(StartAt::Latest).await.expect("latest resolves");
    assert_eq!(drain(&mut make(), &latest, LARGE).await, [], "nothing lies behind the latest bookmark");
    let first_incarnation: Vec<_> = all.iter().filter(|read| read.incarnation == all[0].incarnation).collect();
    let middle = first_incarnation[first_incarnation.len() / 2];
    let named = make().start(StartAt::At(middle.position)).await.expect("a position resolves");
    assert_eq!(named.position, middle.position);
    assert_eq!(drain(&mut make(), &named, LARGE).await.first(), Some(middle));
}

/// Goal: replay gives the same inputs at the same positions, however they are batched. Method: every bookmark of a run
/// in the smallest batches, resumed by a fresh source in several rooms.
pub async fn replay_from_any_bookmark_gives_the_same_inputs<S: Source>(make: &impl Fn() -> S) {
    let all = read_all(make).await;
    let steps = steps(make, Room { events: 1, bytes: 1 }).await;
    assert_eq!(steps.iter().flat_map(|step| step.inputs.clone()).collect::<Vec<_>>(), all);
    let mut read = 0;
    for (number, step) in steps.iter().enumerate() {
        read += step.inputs.len();
        if number < 16 || number % 97 == 0 || number + 3 > steps.len() {
            for room in ROOMS {
                let rest = drain(&mut make(), &step.after, room).await;
                assert_eq!(rest, all[read..], "from {} in {room:?}", step.after);
            }
        }
    }
}

/// Goal: buffers are bounded. Method: in every room, count what a poll adds.
pub async fn a_poll_keeps_within_its_room<S: Source>(make: &impl Fn() -> S) {
    for room in ROOMS {
        for Step { inputs, .. } in steps(make, room).await {
            assert!(inputs.len() <= room.events, "{} inputs in {room:?}", inputs.len());
            let before_last: usize = inputs.iter().rev().skip(1).map(|read| read.bytes.len()).sum();
            assert!(before_last <= room.bytes, "went on after {before_last} bytes in {room:?}");
        }
    }
}

/// Goal: nothing is skipped and nothing repeated at a crash. Method: the bookmark lies behind the last input handed
/// out and not behind the next one.
pub async fn the_bookmark_passes_only_what_was_handed_out<S: Source>(make: &impl Fn() -> S) {
    let steps = steps(make, Room { events: 2, bytes: 1024 * 1024 }).await;
    for pair in steps.windows(2) {
        let (number, position) = (pair[0].after.incarnation.number, pair[0].after.position);
        for read in pair[0].inputs.iter().filter(|read| read.incarnation == number) {
            assert!(read.position < position, "{} was handed out, the bookmark is at {position}", read.position);
        }
        for read in pair[1].inputs.iter().filter(|read| read.incarnation == number) {
            assert!(read.position >= position, "{} was not, the bookmark is at {position}", read.position);
        }
    }
}

/// Goal: a source goes on from its own bookmarks. Method: ask a fresh source about each; asking changes nothing.
pub async fn own_bookmarks_are_held<S: Source>(make: &impl Fn() -> S) {
    let mut source = make();
    let start = source.start(StartAt::Earliest).await.expect("earliest resolves");
    assert_eq!(source.hold(&start).await.expect("hold answers"), Held::Yes);
    for step in steps(make, Room { events: 3, bytes: 1024 * 1024 }).await {
        assert_eq!(make().hold(&step.after).await.expect("hold answers"), Held::Yes, "at {}", step.after);
    }
    let all = read_all(make).await;
    source.assign(&start, Follow::No).await.expect("assign");
    let mut inputs = Inputs::default();
    let room = Room { events: 1, bytes: 1 };
    while inputs.is_empty() {
        source.poll(&mut inputs, room).await.expect("poll");
    }
    let bookmark = source.bookmark();
    assert_eq!(source.hold(&start).await.expect("hold answers"), Held::Yes);
    assert_eq!(source.bookmark(), bookmark, "asking moves nothing");
    let rest = rest_of(&mut source, LARGE).await.into_iter().flat_map(|step| step.inputs).collect::<Vec<_>>();
    assert_eq!(rest, all[1..]);
}

/// Goal: a target that was restored can be filled again. Method: ask a fresh source about the range from the start to each of
/// its bookmarks; one that ends in something else is not held.
pub async fn the_range_up_to_an_own_bookmark_is_held<S: Source>(make: &impl Fn() -> S) {
    let start = make().start(StartAt::Earliest).await.expect("earliest resolves");
    for step in steps(make, Room { events: 3, bytes: 1024 * 1024 }).await {
        let held = make().hold_range(&start, &step.after).await.expect("hold_range answers");
        assert_eq!(held, Held::Yes, "up to {}", step.after);
    }
    let strange = Bookmark::new(Incarnation::new(2, "something else"), start.position);
    let held = make().hold_range(&start, &strange).await.expect("hold_range answers");
    assert_ne!(held, Held::Yes, "nothing leads there");
}

/// Goal: a position of another incarnation is never read. Method: the same position under a strange description.
pub async fn another_incarnation_is_not_held<S: Source>(make: &impl Fn() -> S) {
    let start = make().start(StartAt::Earliest).await.expect("earliest resolves");
    let strange = Bookmark::new(Incarnation::new(1, "something else"), start.position);
    let held = make().hold(&strange).await.expect("hold answers");
    let now = start.incarnation.text.to_string();
    assert_eq!(held, Held::OtherIncarnation { now });
    let refused = make().assign(&strange, Follow::No).await;
    assert!(matches!(refused, Err(SourceError::Gap { .. })), "{refused:?}");
}

/// Goal: an ack confirms and decides nothing. Method: ack after every poll, then replay what was acked.
pub async fn an_ack_changes_nothing_that_is_read<S: Source>(make: &impl Fn() -> S) {
    let all = read_all(make).await;
    let mut source = make();
    let start = source.start(StartAt::Earliest).await.expect("earliest resolves");
    source.assign(&start, Follow::No).await.expect("assign");
    let mut found = Vec::new();
    while let Some(step) = next_step(&mut source, Room { events: 2, bytes: 1024 * 1024 }).await {
        found.extend(step.inputs);
        source.ack(&step.after).await.expect("ack");
    }
    assert_eq!(found, all);
    assert_eq!(drain(&mut make(), &start, LARGE).await, all);
}

/// Goal: a poll may be dropped at any await. Method: give each poll no time at all, then take what is left.
pub async fn a_poll_that_is_dropped_loses_nothing<S: Source>(make: &impl Fn() -> S) {
    let all = read_all(make).await;
    let mut source = make();
    let start = source.start(StartAt::Earliest).await.expect("earliest resolves");
    source.assign(&start, Follow::No).await.expect("assign");
    let mut found = Vec::new();
    for _ in 0..4 {
        let (mut inputs, number) = (Inputs::default(), source.bookmark().incarnation.number);
        let poll = source.poll(&mut inputs, Room { events: 1, bytes: 1024 });
        match tokio::time::timeout(Duration::ZERO, poll).await {
            Ok(polled) => drop(polled.expect("poll")),
            Err(_dropped) => {}
        }
        found.extend(reads(&inputs, number));
    }
    found.extend(rest_of(&mut source, LARGE).await.into_iter().flat_map(|step| step.inputs));
    assert_eq!(found, all);
}

/// Everything from the earliest input to the end.
pub async fn read_all<S: Source>(make: &impl Fn() -> S) -> Vec<Read> {
    let start = make().start(StartAt::Earliest).await.expect("earliest resolves");
    drain(&mut make(), &start, LARGE).await
}

/// Everything from `bookmark` to the end.
pub async fn drain<S: Source>(source: &mut S, bookmark: &Bookmark, room: Room) -> Vec<Read> {
    source.assign(bookmark, Follow::No).await.expect("assign");
    rest_of(source, room).await.into_iter().flat_map(|step| step.inputs).collect()
}

async fn steps<S: Source>(make: &impl Fn() -> S, room: Room) -> Vec<Step> {
    let mut source = make();
    let start = source.start(StartAt::Earliest).await.expect("earliest resolves");
    source.assign(&start, Follow::No).await.expect("assign");
    rest_of(&mut source, room).await
}

async fn rest_of<S: Source>(source: &mut S, room: Room) -> Vec<Step> {
    let mut steps = Vec::new();
    while let Some(step) = next_step(source, room).await {
        steps.push(step);
    }
    steps
}

/// The next poll that found something, or none at the end.
async fn next_step<S: Source>(source: &mut S, room: Room) -> Option<Step> {
    for _ in 0..IDLE_MAX {
        let (mut inputs, number) = (Inputs::default(), source.bookmark().incarnation.number);
        let polled = source.poll(&mut inputs, room).await.expect("poll");
        assert_eq!(polled == Polled::Records, !inputs.is_empty(), "{polled:?} with {} inputs", inputs.len());
        match polled {
            Polled::Records => return Some(Step { inputs: reads(&inputs, number), after: source.bookmark() }),
            Polled::Boundary => {
                let end = source.bookmark();
                assert_eq!(end.incarnation.number, number, "a boundary moves nothing by itself");
                source.close_epoch(&end).await.expect("nothing has changed");
                source.step().await.expect("a step");
                assert_eq!(source.bookmark().incarnation.number, number + 1, "a step counts on by one");
                return Some(Step { inputs: Vec::new(), after: source.bookmark() });
            }
            Polled::End => return None,
            Polled::Idle => {}
        }
    }
    panic!("the source was idle {IDLE_MAX} times in a row and did not end");
}

fn reads(inputs: &Inputs, incarnation: u32) -> Vec<Read> {
    let read = |index| Read {
        incarnation,
        position: inputs.position(index),
        bytes: inputs.bytes(index).to_vec(),
        oversized: inputs.oversized_length(index),
    };
    (0..inputs.len()).map(read).collect()
}
