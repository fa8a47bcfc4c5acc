//! `hapax dlq`: dead letters, with no worker needed.

mod choice;
mod pace;
mod pages;
mod place;
mod replay;
mod terms;
mod verdict;

use std::collections::BTreeSet;

use hapax_engine::letters::{LetterChoice, LetterStore as _, StoredLetter};
use hapax_model::letter::LetterBytes;
use hapax_model::units::Rate;
use serde_json::json;

use self::choice::{FoundCause, FoundLetters, Pages};
use self::place::InputPlaces;
use super::table::Table;
use super::{confirmed, known_workflow, load, print_json};
use crate::assemble::{AnyBooks, Place, Purpose};
use crate::cli::{DlqChoice, DlqCommand, Doing, Shared};
use crate::config::Config;
use crate::exit::{Failure, USAGE};

/// Lists, shows, replays or discards.
pub(crate) async fn dlq(command: DlqCommand, shared: &Shared) -> Result<u8, Failure> {
    let mut loaded = load(shared)?;
    if matches!(command, DlqCommand::Replay { .. }) {
        crate::assemble::find_files(&mut loaded.config).await;
    }
    let choice = command.choice();
    if let Some(workflow) = choice.workflow.as_ref().filter(|_| !choice.all) {
        known_workflow(&loaded.config, workflow)?;
    }
    match &command {
        DlqCommand::List(choice) => list(choice, &loaded.config, shared).await,
        DlqCommand::Show { id, choice } => show(*id, choice, &loaded.config, shared).await,
        DlqCommand::Replay { choice, doing, overwrite, in_doubt, rate } => {
            if choice.all {
                let message = "letters are replayed by the configuration of their workflow; --all has no meaning here";
                return Err(Failure::new("HX5001", message).with_exit(USAGE));
            }
            let allowed = verdict::Allowed { overwrite: *overwrite, in_doubt: *in_doubt };
            let rate = rate.as_deref().map(read_rate).transpose()?;
            let wanted = replay::Wanted { doing: *doing, allowed, rate };
            replay::replay(choice, &wanted, &loaded.config, shared).await
        }
        DlqCommand::Discard { choice, doing } => discard(choice, *doing, &loaded.config).await,
    }
}

/// `500/s`, `30/m`, or a number per second.
fn read_rate(text: &str) -> Result<Rate, Failure> {
    let bare = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let written = if bare { format!("{text}/s") } else { text.to_owned() };
    written.parse().map_err(|error: hapax_model::units::NoQuantity| {
        let message = format!("--rate {text}: {}; write a rate such as 500/s or 30/m", error.why);
        Failure::new("HX5001", message).with_exit(USAGE)
    })
}

impl FoundCause {
    /// Whose they are, for people.
    fn owner_text(&self) -> String {
        let name = |owner: &choice::Owner| format!("{}/{}", owner.workflow, owner.sink);
        self.owner.as_ref().map_or_else(|| "a delivery without progress".to_owned(), name)
    }
}

async fn list(choice: &DlqChoice, config: &Config, shared: &Shared) -> Result<u8, Failure> {
    let FoundLetters { mut books, causes, of_others } = choice::find(choice, config, Purpose::Look).await?;
    let places = places_of_first(&causes, &mut books, config).await?;
    if shared.json {
        let one = |(FoundCause { at, owner, group }, place): (&FoundCause, &FirstPlace)| {
            json!({
                "database": books[*at].0.to_string(), "workflow": owner.as_ref().map(|owner| &owner.workflow),
                "sink": owner.as_ref().map(|owner| &owner.sink), "number": group.first_id, "cause": group.fingerprint,
                "code": group.code, "stage": group.stage, "count": group.count, "firstAtMs": group.first_at_ms,
                "lastAtMs": group.last_at_ms, "example": group.example, "lane": place.lane, "position": place.position, "file": place.file,
            })
        };
        print_json(&json!({"causes": causes.iter().zip(&places).map(one).collect::<Vec<_>>(), "ofOthers": of_others}));
        return Ok(0);
    }
    if causes.is_empty() {
        println!("No dead letters.");
    } else {
        let mut table = Table::new(&["letters", "cause", "code", "stage", "of", "what", "for example", "first at"]);
        for (found, place) in causes.iter().zip(&places) {
            let group = &found.group;
            table.row(vec![
                group.count.to_string(),
                group.first_id.to_string(),
                group.code.clone(),
                group.stage.clone(),
                found.owner_text(),
                group.fingerprint.clone(),
                group.example.clone(),
                place.words.clone(),
            ]);
        }
        print!("{table}");
        println!(
            "`hapax dlq replay --cause …` delivers them again, `hapax dlq discard --cause …` gives them up; both ask first. \
             A cause is named by its number, its code or its text."
        );
    }
    if of_others > 0 {
        println!(
            "{of_others} more letter(s) here belong to workflows that are not in this configuration; --all lists them."
        );
    }
    Ok(0)
}

/// Where the oldest letter of a cause lies.
#[derive(Default)]
struct FirstPlace {
    words: String,
    lane: Option<String>,
    position: Option<String>,
    file: Option<String>,
}

/// Where the oldest letter of each cause lies: a position alone is of no use where a lane is made of several files.
async fn places_of_first(
    causes: &[FoundCause],
    books: &mut [(Place, AnyBooks)],
    config: &Config,
) -> Result<Vec<FirstPlace>, Failure> {
    let mut found = Vec::new();
    let mut known: Vec<(usize, InputPlaces<'_>)> = Vec::new();
    for cause in causes {
        let books = &mut books[cause.at].1;
        if known.last().is_none_or(|(at, _)| *at != cause.at) {
            known.push((cause.at, InputPlaces::of(books, config).await?));
        }
        let letter = InputPlaces::first_of(cause, books).await?;
        let places = known.last().map(|(_, places)| places);
        found.push(match (letter, places) {
            (Some(letter), Some(places)) => FirstPlace {
                words: places.in_words(&letter),
                file: places.file_of(&letter).map(|file| file.to_string()),
                position: Some(letter.position.to_string()),
                lane: Some(letter.delivery.lane),
            },
            (None, _) | (_, None) => FirstPlace::default(),
        });
    }
    Ok(found)
}

async fn show(id: i64, choice: &DlqChoice, config: &Config, shared: &Shared) -> Result<u8, Failure> {
    let choice = DlqChoice { ids: vec![id], ..choice.clone() };
    let FoundLetters { mut books, causes, .. } = choice::find(&choice, config, Purpose::Look).await?;
    let mut shown = 0;
    for found in &causes {
        let places = InputPlaces::of(&mut books[found.at].1, config).await?;
        let mut pages = Pages::of(found, &choice);
        while let Some(page) = pages.next(&mut books[found.at].1).await? {
            for letter in page {
                shown += 1;
                if shared.json {
                    print_json(&letter_json(&letter, &places));
                } else {
                    print_letter(&letter, &places);
                }
            }
        }
    }
    if shown > 0 {
        return Ok(0);
    }
    let mut message = format!("there is no letter number {id}; `hapax dlq list` groups them");
    for (_, books) in &mut books {
        let by_number = LetterChoice { ids: vec![id], ..LetterChoice::default() };
        if let Some(letter) = books.list(&by_number, 0, 1).await?.first().filter(|_| !choice.all) {
            message = format!("letter {id} belongs to {}, which is not chosen here; --all shows it", letter.delivery);
        }
    }
    Err(Failure::new("HX5007", message).with_exit(USAGE))
}

fn letter_json(letter: &StoredLetter, places: &InputPlaces<'_>) -> serde_json::Value {
    let (bytes, length) = match &letter.bytes {
        LetterBytes::Whole(bytes) => (bytes, bytes.len() as u64),
        LetterBytes::Cut { head, length, .. } => (head, *length),
    };
    json!({
        "id": letter.id, "workflow": letter.delivery.workflow, "sink": letter.delivery.sink, "lane": letter.delivery.lane,
        "epoch": letter.epoch, "position": letter.position.to_string(), "incarnation": letter.incarnation, "stage": letter.stage,
        "code": letter.code, "inDoubt": letter.is_in_doubt(), "message": letter.message, "cause": letter.fingerprint, "eventKey": letter.event_key,
        "writtenAtMs": letter.written_at_ms, "state": letter.state, "length": length, "file": places.file_of(letter).map(|file| file.to_string()), "input": String::from_utf8_lossy(bytes),
    })
}

fn print_letter(letter: &StoredLetter, places: &InputPlaces<'_>) {
    println!("letter {} of {} ({})", letter.id, letter.delivery, letter.state);
    println!(
        "  died at stage {} of epoch {}, position {} of {}",
        letter.stage, letter.epoch, letter.position, letter.incarnation
    );
    println!("  at {}", places.in_words(letter));
    println!("  {}: {}", letter.code, letter.message);
    if let Some(key) = &letter.event_key {
        println!("  event key {key}");
    }
    match &letter.bytes {
        LetterBytes::Whole(bytes) => println!("  input ({} bytes): {}", bytes.len(), String::from_utf8_lossy(bytes)),
        LetterBytes::Cut { head, length, .. } => {
            println!("  input ({length} bytes, the first {} kept): {}", head.len(), String::from_utf8_lossy(head));
        }
    }
}

async fn discard(choice: &DlqChoice, doing: Doing, config: &Config) -> Result<u8, Failure> {
    let FoundLetters { mut books, causes, .. } = choice::find(choice, config, Purpose::Look).await?;
    let places: BTreeSet<usize> = causes.iter().map(|found| found.at).collect();
    for at in places {
        books[at].1.check_letter_rights().await?;
    }
    for found in &causes {
        let (place, group) = (&books[found.at].0, &found.group);
        println!("{place}: {} letter(s) of {}, {}: {}", group.count, found.owner_text(), group.code, group.fingerprint);
    }
    let total: u64 = causes.iter().map(|found| found.group.count).sum();
    if total == 0 {
        println!("No dead letters to discard.");
        return Ok(0);
    }
    if !confirmed(doing, &format!("Discard {total} letter(s)? They stay readable and are never delivered."))? {
        return Ok(0);
    }
    for (place, books) in &mut books {
        *books = AnyBooks::reopened(place).await?;
    }
    let mut discarded = 0;
    for found in &causes {
        let mut pages = Pages::of(found, choice);
        while let Some(page) = pages.next(&mut books[found.at].1).await? {
            let ids: Vec<i64> = page.iter().filter(|letter| letter.state == "dead").map(|letter| letter.id).collect();
            if !ids.is_empty() {
                discarded += books[found.at].1.discard(&ids).await?;
            }
        }
    }
    println!("{discarded} letter(s) discarded.");
    Ok(0)
}
