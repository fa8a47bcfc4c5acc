//! `hapax check`: does each guarantee hold, and why.

use serde_json::json;

use super::{load, print_json};
use crate::assemble::{Live, Part, parts};
use crate::cli::{CheckArgs, Shared};
use crate::exit::Failure;
use hapax_model::audit::Audit;

/// What one sink's check found.
struct Finding<'a> {
    part: Part<'a>,
    audit: Audit,
    live: Option<Result<Live, Failure>>,
}

impl Finding<'_> {
    fn exit_code(&self) -> u8 {
        let live = self.live.as_ref().and_then(|live| live.as_ref().err()).map_or(0, |failure| failure.exit_code);
        let audit = self.audit.may_start().map_or_else(|refused| refused.exit_code, |()| 0);
        live.max(audit)
    }
}

/// Judges every workflow.
pub(crate) async fn check(args: &CheckArgs, shared: &Shared) -> Result<u8, Failure> {
    let loaded = load(shared)?;
    let mut findings = Vec::new();
    for part in parts(&loaded.config) {
        let live = if args.live {
            Some(part.live().await)
        } else if part.table_decides_mode() {
            part.live().await.ok().map(Ok)
        } else {
            None
        };
        let audit = part.audit(live.as_ref().and_then(|live| live.as_ref().ok()));
        findings.push(Finding { part, audit, live });
    }
    let incomplete: Vec<(&str, &str)> =
        loaded.config.workflows.iter().filter_map(|w| w.incomplete().map(|lacking| (w.id.as_str(), lacking))).collect();
    if shared.json {
        print_json(&as_json(&findings, &incomplete));
    } else {
        findings.iter().for_each(|finding| print_finding(finding, args));
        for (id, lacking) in &incomplete {
            println!("{id}: incomplete, it lacks {lacking}");
        }
        if findings.is_empty() && incomplete.is_empty() {
            println!("There are no workflows in {}.", shared.config.display());
        }
    }
    Ok(findings.iter().map(Finding::exit_code).max().unwrap_or(0))
}

fn print_finding(finding: &Finding<'_>, args: &CheckArgs) {
    let Finding { part, audit, live } = finding;
    println!("{} → {}: {}", part.workflow.id, part.sink.name, audit.headline());
    if let Some(source) = part.source_in_words() {
        println!("  source: {source}");
    }
    match live {
        Some(Ok(live)) => {
            println!("  table: {}", description(live));
            live.notes.iter().for_each(|note| println!("  note: {note}"));
        }
        Some(Err(failure)) => println!("  table: {failure}"),
        None if part.table_decides_mode() => {
            println!(
                "  note: neither onConflict nor keyFields are written and the table could not be read; taken as append"
            );
        }
        None => {}
    }
    if let Err(refused) = audit.may_start() {
        println!("  refused ({}): {}", refused.code, refused.reason);
        println!("  cure: {}", refused.cure);
    }
    if args.explain {
        audit.explain().lines().for_each(|line| println!("  {line}"));
    } else {
        audit.warnings.iter().for_each(|warning| println!("  note: {warning}"));
    }
}

fn as_json(findings: &[Finding<'_>], incomplete: &[(&str, &str)]) -> serde_json::Value {
    let checked: Vec<_> = findings
        .iter()
        .map(|Finding { part, audit, live }| {
            let refused = audit.may_start().err().map(|r| json!({"code": r.code, "reason": r.reason, "cure": r.cure}));
            let live = live.as_ref().map(|live| match live {
                Ok(live) => json!({"fit": true, "mode": live.mode().name(), "description": description(live), "notes": live.notes}),
                Err(failure) => json!({"fit": false, "code": failure.code, "message": failure.message}),
            });
            json!({"workflow": part.workflow.id, "sink": part.sink.name, "source": part.source_in_words(), "audit": audit, "refused": refused, "table": live})
        })
        .collect();
    let incomplete: Vec<_> = incomplete.iter().map(|(id, lacking)| json!({"workflow": id, "lacks": lacking})).collect();
    json!({"checked": checked, "incomplete": incomplete})
}

/// The mode, why it is this one, and the columns that are written.
fn description(live: &Live) -> String {
    format!("{}: {}; writes {}", live.mode().name(), live.why, live.columns.join(", "))
}
