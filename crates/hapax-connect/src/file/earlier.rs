//! Lanes of a pattern as earlier versions made them, every rotated file a lane of its own, brought together as one.
//!
//! Reads: the files of the lane. Writes: nothing. Invariant: what was read must be the older part of the chain, with at most
//! one file begun; anything else is refused by name, since nobody could say in which order the rest was meant.

use std::collections::BTreeMap;
use std::io;

use hapax_model::position::{Bookmark, Incarnation};

use super::chain::Member;
use super::config::FileFormat;
use super::facts::{Facts, ReadMember, first_in};
use super::incarnation::{Opened, was_read_to_its_end, without_end};
use super::is_compressed;
use super::many::{FoundStem, lane_of};

/// Lanes that are one lane now.
#[derive(Debug, PartialEq, Eq)]
pub struct Together {
    /// The old lanes, in the order in which they were read; the last is the one that goes on.
    pub lanes: Vec<String>,
    /// Where the one lane goes on.
    pub at: Bookmark,
}

/// The lanes of earlier versions among those that progress knows, by the lane that each is part of now. `is_stem` tells
/// whether a file of that very name is a lane.
#[must_use]
pub fn earlier_lanes(
    known: &BTreeMap<String, Bookmark>,
    is_stem: impl Fn(&str) -> bool,
) -> BTreeMap<String, Vec<(String, Bookmark)>> {
    let stem_of = |lane: &str| -> String {
        let base = match lane.rsplit_once('#') {
            Some((base, number)) if !base.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => base,
            Some(_) | None => lane,
        };
        if is_stem(lane) { lane.to_owned() } else { lane_of(base).to_owned() }
    };
    let mut groups: BTreeMap<String, Vec<(String, Bookmark)>> = BTreeMap::new();
    for (lane, bookmark) in known {
        groups.entry(stem_of(lane)).or_default().push((lane.clone(), bookmark.clone()));
    }
    groups.retain(|stem, lanes| lanes.iter().any(|(lane, _)| lane != stem));
    groups
}

/// Brings lanes together that are one lane now. `stem` is none if none of its files is there.
///
/// # Errors
/// What stands in the way, in words.
pub fn bring_together(
    stem: Option<&FoundStem>,
    lanes: &[(String, Bookmark)],
    format: &FileFormat,
) -> Result<Together, String> {
    let members = stem.map(FoundStem::members).unwrap_or_default();
    let mut rows: Vec<Option<&(String, Bookmark)>> = vec![None; members.len()];
    let mut gone = Vec::new();
    for row in lanes {
        let (lane, bookmark) = row;
        let here = |member: &Member| bookmark.incarnation.text.starts_with(&format!("{},", member.identity));
        match members.iter().position(here) {
            Some(at) => {
                if let Some((other, _)) = rows[at].replace(row) {
                    return Err(format!("\"{other}\" and \"{lane}\" have both read {}", members[at].name));
                }
            }
            None if was_read_to_its_end(&bookmark.incarnation.text) => gone.push(row),
            None => {
                return Err(format!("the file of \"{lane}\" is gone, and nobody knows that it was read to its end"));
            }
        }
    }
    let last = rows.iter().rposition(Option::is_some);
    for (at, row) in rows.iter().enumerate().take(last.unwrap_or(0)) {
        let Some((lane, bookmark)) = row else {
            return Err(format!("{} was not read, but younger files of its chain were", members[at].name));
        };
        if !is_finished(&members[at], bookmark) {
            return Err(format!("\"{lane}\" was not read to its end, but younger files of its chain were begun"));
        }
    }
    let current = match (last.and_then(|at| rows[at]), gone.last().copied()) {
        (Some(row), _) | (None, Some(row)) => row,
        (None, None) => return Err("there is nothing to bring together".to_owned()),
    };
    // The numbers of each lane come after those of the lanes before it.
    let number = lanes.iter().map(|(_, bookmark)| bookmark.incarnation.number).sum();
    let read = rows.iter().zip(members).take(last.unwrap_or(0));
    let read = read.filter_map(|(row, member)| row.map(|(_, bookmark)| read_member(member, bookmark, format)));
    let read: io::Result<Vec<ReadMember>> = read.collect();
    let read = read.map_err(|error| format!("its files cannot be read: {error}"))?;
    let tail = match last.map(|at| &members[at]).filter(|member| !member.packed) {
        Some(member) => Opened::open(&member.path, format).and_then(|file| file.tail_hash(current.1.position.offset)),
        None => Ok(None),
    };
    let tail = tail.map_err(|error| format!("its files cannot be read: {error}"))?;
    let facts = Facts { device: last.map(|at| members[at].device), tail, read, ..Facts::default() };
    let incarnation = Incarnation::new(number, &current.1.incarnation.text);
    let at = Bookmark { facts: Some(facts.to_text().into()), incarnation, ..current.1.clone() };
    let in_order = gone.into_iter().chain(rows.into_iter().flatten()).map(|(lane, _)| lane);
    let others = in_order.filter(|lane| **lane != current.0);
    Ok(Together { lanes: others.chain([&current.0]).cloned().collect(), at })
}

fn is_finished(member: &Member, bookmark: &Bookmark) -> bool {
    let whole_archive = is_compressed(&member.path) && was_read_to_its_end(&bookmark.incarnation.text);
    member.length == bookmark.position.offset || whole_archive
}

fn read_member(member: &Member, bookmark: &Bookmark, format: &FileFormat) -> io::Result<ReadMember> {
    let tail = if member.packed { None } else { Opened::open(&member.path, format)?.tail(member.length)? };
    Ok(ReadMember {
        identity: member.identity.clone(),
        length: member.length,
        first: first_in(without_end(&bookmark.incarnation.text)).to_owned(),
        tail,
        name: member.name.clone(),
    })
}

#[cfg(test)]
#[path = "earlier_tests.rs"]
mod tests;
