//! `hapax dlq`: dead letters, with no worker needed.

mod pace;
mod replay;
mod verdict;

use hapax_engine::books::{Books as _, LetterGroup};
use hapax_engine::letters::{LetterChoice, LetterStore as _, StoredLetter};
use hapax_model::letter::LetterBytes;
use hapax_model::units::Rate;
use serde_json::json;

use super::table::Table;
use super::{confirmed, known_workflow, load, print_json};
use crate::assemble::{AnyBooks, Place};
use crate::cli::{DlqChoice, DlqCommand, Doing, Shared};
use crate::config::Config;
use crate::exit::{Failure, USAGE};

/// Lists, shows, replays or discards.
pub(crate) async fn dlq(command: DlqCommand, shared: &Shared) -> Result<u8, Failure> {
    let mut loaded = load(shared)?;
    if matches!(command, DlqCommand::Replay { .. }) {
        crate::assemble::find_files(&mut loaded.config).await;
    }
    if let Some(workflow) = &command.choice().workflow {
        known_workflow(&loaded.config, workflow)?;
    }
    match command {
        DlqCommand::List(choice) => list(&chosen(&choice), &loaded.config, shared).await,
        DlqCommand::Show { id, choice } => show(id, &choice, &loaded.config, shared).await,
        DlqCommand::Replay { choice, doing, overwrite, rate } => {
            let overwrite = if overwrite { verdict::Overwrite::Allowed } else { verdict::Overwrite::Refused };
            let rate = rate.as_deref().map(read_rate).transpose()?;
            let wanted = replay::Wanted { doing, overwrite, rate };
            replay::replay(&chosen(&choice), &wanted, &loaded.config, shared).await
        }
        DlqCommand::Discard { choice, doing } => discard(&chosen(&choice), doing, &loaded.config).await,
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

fn chosen(choice: &DlqChoice) -> LetterChoice {
    LetterChoice {
        workflow: choice.workflow.clone(),
        sink: choice.sink.clone(),
        cause: choice.cause.clone(),
        ids: choice.ids.clone(),
        ..LetterChoice::default()
    }
}

/// Every database that may hold letters, each once, opened.
async fn all_books(config: &Config) -> Result<Vec<(Place, AnyBooks)>, Failure> {
    let mut all = Vec::new();
    for place in Place::of_all(config) {
        if let Some(books) = AnyBooks::open(&place).await? {
            all.push((place, books));
        }
    }
    Ok(all)
}

async fn list(choice: &LetterChoice, config: &Config, shared: &Shared) -> Result<u8, Failure> {
    let mut found: Vec<(Place, LetterGroup)> = Vec::new();
    for (place, mut books) in all_books(config).await? {
        found.extend(books.causes(choice, 0).await?.into_iter().map(|group| (place.clone(), group)));
    }
    if shared.json {
        let one = |(place, group): &(Place, LetterGroup)| {
            json!({
                "database": place.to_string(), "cause": group.fingerprint, "code": group.code, "stage": group.stage, "count": group.count,
                "firstAtMs": group.first_at_ms, "lastAtMs": group.last_at_ms, "example": group.example,
            })
        };
        print_json(&json!({"causes": found.iter().map(one).collect::<Vec<_>>()}));
        return Ok(0);
    }
    if found.is_empty() {
        println!("No dead letters.");
        return Ok(0);
    }
    let mut table = Table::new(&["letters", "code", "stage", "cause", "for example"]);
    for (_, group) in &found {
        let cells = [
            group.count.to_string(),
            group.code.clone(),
            group.stage.clone(),
            group.fingerprint.clone(),
            group.example.clone(),
        ];
        table.row(cells.to_vec());
    }
    print!("{table}");
    println!(
        "`hapax dlq replay --cause …` delivers them again, `hapax dlq discard --cause …` gives them up; both ask first."
    );
    Ok(0)
}

async fn show(id: i64, choice: &DlqChoice, config: &Config, shared: &Shared) -> Result<u8, Failure> {
    let choice = LetterChoice { ids: vec![id], ..chosen(choice) };
    let mut shown = 0;
    for (_, mut books) in all_books(config).await? {
        for letter in books.list(&choice, 0, 10).await? {
            shown += 1;
            if shared.json { print_json(&letter_json(&letter)) } else { print_letter(&letter) }
        }
    }
    if shown == 0 {
        return Err(Failure::new("HX5007", format!("there is no letter number {id}; `hapax dlq list` groups them"))
            .with_exit(USAGE));
    }
    Ok(0)
}

fn letter_json(letter: &StoredLetter) -> serde_json::Value {
    let (bytes, length) = match &letter.bytes {
        LetterBytes::Whole(bytes) => (bytes, bytes.len() as u64),
        LetterBytes::Cut { head, length, .. } => (head, *length),
    };
    json!({
        "id": letter.id, "workflow": letter.delivery.workflow, "sink": letter.delivery.sink, "lane": letter.delivery.lane,
        "epoch": letter.epoch, "position": letter.position.to_string(), "incarnation": letter.incarnation, "stage": letter.stage,
        "code": letter.code, "inDoubt": letter.is_in_doubt(), "message": letter.message, "cause": letter.fingerprint, "eventKey": letter.event_key,
        "writtenAtMs": letter.written_at_ms, "state": letter.state, "length": length, "input": String::from_utf8_lossy(bytes),
    })
}

fn print_letter(letter: &StoredLetter) {
    println!("letter {} of {} ({})", letter.id, letter.delivery, letter.state);
    println!(
        "  died at stage {} of epoch {}, position {} of {}",
        letter.stage, letter.epoch, letter.position, letter.incarnation
    );
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

async fn discard(choice: &LetterChoice, doing: Doing, config: &Config) -> Result<u8, Failure> {
    let mut total = 0;
    for (place, mut books) in all_books(config).await? {
        for group in books.causes(choice, 0).await? {
            println!("{place}: {} letter(s), {}: {}", group.count, group.code, group.fingerprint);
            total += group.count;
        }
    }
    if total == 0 {
        println!("No dead letters to discard.");
        return Ok(0);
    }
    if !confirmed(doing, &format!("Discard {total} letter(s)? They stay readable and are never delivered."))? {
        return Ok(0);
    }
    let mut discarded = 0;
    for (_, mut books) in all_books(config).await? {
        let mut after = 0;
        loop {
            let page = books.list(choice, after, pace::PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.id;
            let ids: Vec<i64> = page.iter().filter(|letter| letter.state == "dead").map(|letter| letter.id).collect();
            if !ids.is_empty() {
                discarded += books.discard(&ids).await?;
            }
        }
    }
    println!("{discarded} letter(s) discarded.");
    Ok(0)
}
