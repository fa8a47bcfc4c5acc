//! What every [`Source`] must do, as tests over a factory.
//!
//! The factory makes a fresh source over data that stays as it is: at least three inputs, with an end under
//! [`Follow::No`]. Each function is one clause of the trait's doc; [`every_clause`] runs them all, and
//! [`every_clause_across_members`] where a lane is made of several things that are read one after the other.

use std::collections::BTreeSet;
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

/// What was read between two bookmarks: inputs, or the way to the next member.
#[derive(Debug)]
struct Step {
    inputs: Vec<Read>,
    after: Bookmark,
    /// The end of the member that was left, as its last epoch was closed.
    left: Option<Bookmark>,
}

impl Step {
    /// The bookmarks that progress may name after it.
    fn bookmarks(&self) -> impl Iterator<Item = &Bookmark> {
        self.left.iter().chain([&self.after])
    }
}

/// All clauses.
pub async fn every_clause<S: Source>(make: impl Fn() -> S) {
    latest_passes_what_is_there(&make).await;
    every_clause_but_latest(&make).await;
}

async fn every_clause_but_latest<S: Source>(make: &impl Fn() -> S) {
    the_start_is_earliest_or_named(make).await;
    replay_from_any_bookmark_gives_the_same_inputs(make).await;
    a_poll_keeps_within_its_room(make).await;
    the_bookmark_passes_only_what_was_handed_out(make).await;
    own_bookmarks_are_held(make).await;
    the_range_up_to_an_own_bookmark_is_held(make).await;
    another_incarnation_is_not_held(make).await;
    an_ack_changes_nothing_that_is_read(make).await;
    a_poll_that_is_dropped_loses_nothing(make).await;
    numbers_never_fall(make).await;
    a_step_is_a_commit_of_its_own(make).await;
    a_step_that_was_not_committed_is_taken_again(make).await;
}

/// All clauses, over at least three members with inputs, from the first of which a delivery begins. That it begins with an
/// older one and passes what is there exclude each other: no configuration asks a lane for both.
pub async fn every_clause_across_members<S: Source>(make: impl Fn() -> S) {
    let mut numbers: Vec<u32> = read_all(&make).await.iter().map(|read| read.incarnation).collect();
    numbers.dedup();
    assert!(numbers.len() >= 3, "the factory gives at least three members, not {numbers:?}");
    every_clause_but_latest(&make).await;
}

/// Goal: a delivery that is to begin with what comes passes all that is there. Method: the rest behind the latest bookmark.
pub async fn latest_passes_what_is_there<S: Source>(make: &impl Fn() -> S) {
    let latest = make().start(StartAt::Latest).await.expect("latest resolves");
    assert_eq!(drain(&mut make(), &latest, LARGE).await, [], "nothing lies behind the latest bookmark");
}

/// Goal: a delivery without progress begins where it was told. Method: earliest reads all, and a named position what lies
/// behind it.
pub async fn the_start_is_earliest_or_named<S: Source>(make: &impl Fn() -> S) {
    let all = read_all(make).await;
    assert!(all.len() >= 3, "the factory gives at least three inputs, not {}", all.len());
    let first_incarnation: Vec<_> = all.iter().filter(|read| read.incarnation == all[0].incarnation).collect();
    let middle = first_incarnation[first_incarnation.len() / 2];
    let named = make().start(StartAt::At(middle.position)).await.expect("a position resolves");
    assert_eq!(named.position, middle.position);
    let from_middle = all.iter().position(|read| read == middle).expect("it was read");
    assert_eq!(drain(&mut make(), &named, LARGE).await, all[from_middle..]);
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
            for (bookmark, room) in step.bookmarks().flat_map(|bookmark| ROOMS.map(|room| (bookmark, room))) {
                let rest = drain(&mut make(), bookmark, room).await;
                assert_eq!(rest, all[read..], "from {bookmark} in {room:?}");
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
        for bookmark in step.bookmarks() {
            assert_eq!(make().hold(bookmark).await.expect("hold answers"), Held::Yes, "at {bookmark}");
        }
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
        for bookmark in step.bookmarks() {
            let held = make().hold_range(&start, bookmark).await.expect("hold_range answers");
            assert_eq!(held, Held::Yes, "up to {bookmark}");
        }
    }
    let strange = Bookmark::new(Incarnation::new(2, "something else"), start.position);
    let held = make().hold_range(&start, &strange).await.expect("hold_range answers");
    assert_ne!(held, Held::Yes, "nothing leads there");
}

/// Goal: a position of another incarnation is never read. Method: the same position under a strange description; the answer
/// names something that is read.
pub async fn another_incarnation_is_not_held<S: Source>(make: &impl Fn() -> S) {
    let start = make().start(StartAt::Earliest).await.expect("earliest resolves");
    let strange = Bookmark::new(Incarnation::new(1, "something else"), start.position);
    let held = make().hold(&strange).await.expect("hold answers");
    let steps = steps(make, LARGE).await;
    let texts = steps.iter().flat_map(Step::bookmarks).chain([&start]).map(|bookmark| &*bookmark.incarnation.text);
    let (texts, has_several) = (BTreeSet::from_iter(texts), steps.iter().any(|step| step.left.is_some()));
    match &held {
        Held::OtherIncarnation { now } if !has_several => assert_eq!(**now, *start.incarnation.text),
        Held::OtherIncarnation { now } => {
            let told = now.split_once("; ").map_or(&**now, |(told, _)| told);
            assert!(texts.contains(told), "{now} is nothing that is read here");
        }
        // Of several members none may be the one that is there instead.
        Held::Gone { .. } => assert!(has_several, "{held:?}"),
        Held::Yes | Held::Copied { .. } => panic!("{held:?}"),
    }
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

/// Goal: what was read later has the larger number and position, so that progress only goes forward, and no batch spans two
/// members. Method: in every room, each input after the one before it; the number changes in a step only, by one
/// ([`next_step`] looks at each poll).
pub async fn numbers_never_fall<S: Source>(make: &impl Fn() -> S) {
    for room in ROOMS {
        let start = make().start(StartAt::Earliest).await.expect("earliest resolves");
        let (mut at, mut last) = (start, None);
        for step in steps(make, room).await {
            for read in &step.inputs {
                assert_eq!(read.incarnation, at.incarnation.number, "an input of {} in {room:?}", step.after);
                let place = (read.incarnation, read.position);
                assert!(last.is_none_or(|last| last < place), "{place:?} after {last:?} in {room:?}");
                last = Some(place);
            }
            for bookmark in step.bookmarks() {
                let (was, is) =
                    ((at.incarnation.number, at.position), (bookmark.incarnation.number, bookmark.position));
                assert!(was <= is, "from {at} to {bookmark} in {room:?}");
                at = bookmark.clone();
            }
        }
    }
}

/// Goal: the step to the next member is a commit of its own: nothing of that is read before. Method: at each boundary poll
/// again without a step; after it the bookmark lies before all of the new member, and a fresh source goes on from there.
pub async fn a_step_is_a_commit_of_its_own<S: Source>(make: &impl Fn() -> S) {
    let all = read_all(make).await;
    let (mut source, mut read) = (make(), 0);
    let mut from = source.start(StartAt::Earliest).await.expect("earliest resolves");
    source.assign(&from, Follow::No).await.expect("assign");
    for _ in 0..IDLE_MAX {
        let mut inputs = Inputs::default();
        match source.poll(&mut inputs, LARGE).await.expect("poll") {
            Polled::End => break,
            Polled::Idle => {}
            Polled::Records => read += inputs.len(),
            Polled::Boundary => {
                from = source.close_epoch(&from).await.expect("nothing has changed");
                for _ in 0..3 {
                    let polled = source.poll(&mut inputs, LARGE).await.expect("poll");
                    assert!(inputs.is_empty() && polled == Polled::Boundary, "{polled:?} before the step from {from}");
                    assert_eq!((source.bookmark().incarnation.number, source.bookmark().position), of(&from));
                }
                source.step().await.expect("a step");
                let before = from;
                from = source.bookmark();
                assert_eq!(from.incarnation.number, before.incarnation.number + 1);
                let first = all.iter().find(|input| input.incarnation == from.incarnation.number);
                assert!(first.is_none_or(|first| from.position <= first.position), "{from} passes {first:?}");
                assert_eq!(drain(&mut make(), &from, LARGE).await, all[read..], "from {from}");
            }
        }
    }
    assert_eq!(read, all.len());
}

fn of(bookmark: &Bookmark) -> (u32, Position) {
    (bookmark.incarnation.number, bookmark.position)
}

/// Goal: a step whose commit is lost leaves nothing behind. Method: from the end of each member, as it was closed, a fresh
/// source comes to the same next beginning, and gives no input before it.
pub async fn a_step_that_was_not_committed_is_taken_again<S: Source>(make: &impl Fn() -> S) {
    for step in steps(make, LARGE).await {
        let Some(left) = &step.left else { continue };
        let mut source = make();
        source.assign(left, Follow::No).await.expect("assign");
        if source.bookmark().incarnation.number == left.incarnation.number {
            let again = next_step(&mut source, LARGE).await.expect("the member has a next one");
            assert_eq!(again.inputs, [], "before the step from {left}");
        }
        assert_eq!(of(&source.bookmark()), of(&step.after), "the step from {left}");
        assert_eq!(source.bookmark().incarnation.text, step.after.incarnation.text, "the step from {left}");
    }
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
        assert_eq!(source.bookmark().incarnation.number, number, "{polled:?}: only a step leaves a member");
        match polled {
            Polled::Records => {
                return Some(Step { inputs: reads(&inputs, number), after: source.bookmark(), left: None });
            }
            Polled::Boundary => {
                let end = source.bookmark();
                let left = source.close_epoch(&end).await.expect("nothing has changed");
                source.step().await.expect("a step");
                assert_eq!(source.bookmark().incarnation.number, number + 1, "a step counts on by one");
                return Some(Step { inputs: Vec::new(), after: source.bookmark(), left: Some(left) });
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
