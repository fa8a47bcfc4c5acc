use hapax_engine::runtime::Stop;

use super::super::shape::Shape;
use super::*;
use crate::config::{Data, Node};

fn event(input: u64, key: &str, fields: &[(&str, bool)]) -> Output {
    let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), Shape::Bool(*value))).collect();
    Output { input, operation: Operation::Upsert, fields, key: Some(key.to_owned()) }
}

fn kept(outputs: Vec<Output>, cuts: &[u64]) -> Kept {
    Kept { outputs, cuts: cuts.to_vec(), ..Kept::default() }
}

fn fixture() -> Fixture {
    let place = crate::config::problem::Place::whole("hapax.yaml");
    let field = |name: &str| crate::config::node::Entry {
        key: name.to_owned(),
        place: place.clone(),
        node: Node::new(place.clone(), Data::Bool(true)),
    };
    let expect = vec![Node::new(place.clone(), Data::Map(vec![field("a")])); 2];
    Fixture {
        place,
        name: None,
        workflow: "w".into(),
        sink: None,
        input: Vec::new(),
        expect,
        deletes: Vec::new(),
        rejects: Vec::new(),
        keys: None,
    }
}

fn two_ways(other: Result<Kept, Stop>) -> Vec<Ran> {
    let plain = kept(vec![event(1, "k1", &[("a", true)]), event(2, "k2", &[("a", true)])], &[3]);
    let way = Way { batch: Some(1), ended: Ended::AroundCommits };
    vec![Ran { way: Way::PLAIN, result: Ok(plain) }, Ran { way, result: other }]
}

/// Goal: a run that gives something else fails, and says where and after which cut. Method: each thing that can differ.
#[test]
fn a_run_that_differs_is_told_with_its_cut() {
    let good = || vec![event(1, "k1", &[("a", true)]), event(2, "k2", &[("a", true)])];
    let judged = |other: Vec<Output>, keys| judge(&fixture(), &two_ways(Ok(kept(other, &[2, 3]))), keys);
    assert_eq!(judged(good(), KeysAcross::Same), []);
    let another_key = vec![event(1, "k1", &[("a", true)]), event(2, "k9", &[("a", true)])];
    let [told] = judged(another_key.clone(), KeysAcross::Same).try_into().expect("one failure");
    assert_eq!(told.what, "the key of event 2, from input 2, after the cut before input 2, by another worker");
    assert_eq!((told.expected.as_str(), told.got.as_str()), ("k2 (as in one batch)", "k9"));
    assert!(told.way.contains("batches of 1, the worker ended"), "{}", told.way);
    assert_eq!(judged(another_key, KeysAcross::HoldEpoch), []);
    let another_value = vec![event(1, "k1", &[("a", true)]), event(2, "k2", &[("a", false)])];
    assert!(judged(another_value, KeysAcross::HoldEpoch)[0].what.contains("from input 2: .a"));
    let lost = judged(good()[..1].to_vec(), KeysAcross::Same);
    assert_eq!(lost[0].got, "nothing");
    let mut letter = kept(good(), &[3]);
    letter.letters.push(Dead { input: 1, code: "HX2001", message: "no".into() });
    assert!(judge(&fixture(), &two_ways(Ok(letter)), KeysAcross::Same)[0].got.contains("HX2001"));
    let stop = Stop { exit_code: 1, code: "HX4014", message: "other keys".into() };
    assert!(judge(&fixture(), &two_ways(Err(stop)), KeysAcross::Same)[0].got.contains("HX4014: other keys"));
}

/// Goal: of many differences a person reads the first. Method: a hundred outputs where two are expected.
#[test]
fn differences_are_bounded() {
    let many = (1..=100).map(|input| event(input, "k", &[("a", true)])).collect();
    let told = judge(&fixture(), &[Ran { way: Way::PLAIN, result: Ok(kept(many, &[])) }], KeysAcross::Same);
    assert_eq!(told.len(), MOST_TOLD + 1);
    assert_eq!(told.last().map(|it| it.what.as_str()), Some("78 more differences"));
}
