//! Calls a person: a new cause of dead letters, a ledger that does not add up, a delivery that stopped.
//!
//! Reads: the meters, and the letters that are already there, so that a restart is no news. Writes: a bounded queue.
//! Invariant: deliveries never wait for an alert; nothing prints more of the webhook than its host.
//! Not here: HTTP (`send`).

mod send;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use hapax_engine::books::Books as _;
use hapax_engine::letters::LetterChoice;
use hapax_engine::runtime::Reading;
use hapax_model::delivery_state::WorkerState;
use hapax_model::letter::CauseCount;
use hapax_model::position::DeliveryId;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::assemble::{AnyBooks, Purpose, part_of};
use crate::config::Config;
use crate::exit::Failure;
use crate::roster::{Member, Roster, count, now_ms};

/// How often the meters are looked at.
const INTERVAL: Duration = Duration::from_millis(500);
/// So many alerts wait; more are counted and dropped.
const QUEUE: usize = 64;
/// How long the end of the process waits for alerts on their way.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alert {
    kind: &'static str,
    id: DeliveryId,
    code: Option<String>,
    /// What letters of this cause share.
    cause: Option<String>,
    message: String,
    /// A sentence for people.
    text: String,
    at_ms: u64,
}

impl Alert {
    /// The body of the request, as `docs/reference/alerts.md` describes it.
    fn body(&self) -> Value {
        let Self { kind, id, code, cause, message, text, at_ms } = self;
        json!({
            "text": text, "kind": kind, "workflow": id.workflow, "sink": id.sink, "lane": id.lane, "code": code,
            "cause": cause, "message": message, "atMs": at_ms, "worker": hapax_sql::process::session_name(),
        })
    }
}

/// Alerts that are being watched for and sent.
#[derive(Debug)]
pub(crate) struct Alerts {
    ending: watch::Sender<bool>,
    watching: tokio::task::JoinHandle<()>,
    sending: tokio::task::JoinHandle<()>,
}

/// Starts watching, if the configuration names a webhook.
///
/// # Errors
/// `HX5062` if the webhook cannot be called at all: no roots of trust on this machine.
pub(crate) fn start(config: watch::Receiver<Arc<Config>>, roster: Roster) -> Result<Option<Alerts>, Failure> {
    let Some(webhook) = config.borrow().webhook.clone() else { return Ok(None) };
    let (queue, queued) = mpsc::channel(QUEUE);
    let sender = send::Sender::new(webhook, Arc::clone(&roster.process))?;
    let sending = tokio::spawn(sender.run(queued));
    let (ending, ended) = watch::channel(false);
    let watcher = Watcher { config, roster, queue, seen: HashMap::new() };
    let watching = tokio::spawn(watcher.run(ended));
    Ok(Some(Alerts { ending, watching, sending }))
}

impl Alerts {
    /// Looks a last time and waits a while for what is on its way.
    pub(crate) async fn finish(self) {
        self.ending.send_replace(true);
        let both = async {
            drop(self.watching.await);
            drop(self.sending.await);
        };
        if tokio::time::timeout(LAST_WORDS, both).await.is_err() {
            tracing::warn!("the process ends with alerts unsent; the log has them");
        }
    }
}

/// What was already said of a delivery.
#[derive(Debug, Default)]
struct Seen {
    causes: HashSet<(&'static str, String)>,
    unbalanced: bool,
    stopped: bool,
}

struct Watcher {
    config: watch::Receiver<Arc<Config>>,
    roster: Roster,
    queue: mpsc::Sender<Alert>,
    seen: HashMap<DeliveryId, Seen>,
}

impl Watcher {
    async fn run(mut self, mut ended: watch::Receiver<bool>) {
        loop {
            for member in self.roster.members() {
                self.look(&member).await;
            }
            if *ended.borrow() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                _ = ended.wait_for(|ended| *ended) => {}
            }
        }
    }

    async fn look(&mut self, member: &Member) {
        let reading = member.meter.read();
        let seen = self.seen.entry(member.id.clone()).or_default();
        let mut alerts = seen.plain_news(&member.id, &reading);
        let fresh: Vec<CauseCount> = seen.fresh_causes(&reading);
        for cause in fresh {
            if self.is_new(&member.id, &cause, reading.claimed_at_ms).await {
                alerts.push(of_cause(&member.id, &cause));
            }
        }
        for alert in alerts {
            tracing::warn!(delivery = %alert.id, kind = alert.kind, code = alert.code, "alert: {}", alert.text);
            if self.queue.try_send(alert).is_err() {
                count(&self.roster.process.alerts_dropped);
                tracing::error!("the queue of alerts is full: this one is not sent");
            }
        }
    }

    /// Whether no letter of this cause was there before this worker claimed the delivery. Who cannot tell calls: twice is
    /// better than never.
    async fn is_new(&self, id: &DeliveryId, cause: &CauseCount, claimed_at_ms: Option<u64>) -> bool {
        let config = Arc::clone(&self.config.borrow());
        let Some(part) = part_of(&config, id) else { return true };
        let choice = LetterChoice {
            workflow: Some(id.workflow.clone()),
            sink: Some(id.sink.clone()),
            lane: Some(id.lane.clone()),
            cause: Some(cause.fingerprint.clone()),
            ..LetterChoice::default()
        };
        let asked = async {
            match AnyBooks::of_part(&part, &config, Purpose::Look).await? {
                Some(mut books) => Ok::<_, Failure>(books.causes(&choice, 0).await?),
                None => Ok(Vec::new()),
            }
        };
        match Box::pin(asked).await {
            Ok(groups) => {
                let same =
                    groups.iter().find(|group| group.fingerprint == cause.fingerprint && group.code == cause.code);
                same.is_none_or(|group| group.first_at_ms >= claimed_at_ms.unwrap_or(0))
            }
            Err(failure) => {
                tracing::debug!(delivery = %id, %failure, "the letters could not be asked");
                true
            }
        }
    }
}

impl Seen {
    /// News that need no question: the ledger, and a stop. Each once, until it is over.
    fn plain_news(&mut self, id: &DeliveryId, reading: &Reading) -> Vec<Alert> {
        let mut alerts = Vec::new();
        let unbalanced = !reading.ledger.adds_up();
        if unbalanced && !self.unbalanced {
            let totals = reading.ledger.totals;
            let message = format!(
                "read {} is not delivered {} + filtered {} + dead {}",
                totals.read, totals.delivered, totals.filtered, totals.dead
            );
            let text = format!("Hapax: the ledger of {id} does not add up: {message}");
            alerts.push(Alert {
                kind: "ledger",
                id: id.clone(),
                code: None,
                cause: None,
                message,
                text,
                at_ms: now_ms(),
            });
        }
        self.unbalanced = unbalanced;
        let stopped = reading.state == WorkerState::Stopped;
        if stopped && !self.stopped {
            let (code, message) = match &reading.trouble {
                Some(trouble) => (Some(trouble.code.to_owned()), trouble.message.clone()),
                None => (None, String::new()),
            };
            let text = format!("Hapax: {id} stopped ({}): {message}", code.as_deref().unwrap_or("no code"));
            alerts.push(Alert { kind: "stopped", id: id.clone(), code, cause: None, message, text, at_ms: now_ms() });
        }
        self.stopped = stopped;
        alerts
    }

    /// Causes that this process has not looked at yet.
    fn fresh_causes(&mut self, reading: &Reading) -> Vec<CauseCount> {
        let unseen = |cause: &&CauseCount| self.causes.insert((cause.code, cause.fingerprint.clone()));
        reading.causes.iter().filter(unseen).cloned().collect()
    }
}

fn of_cause(id: &DeliveryId, cause: &CauseCount) -> Alert {
    let CauseCount { code, fingerprint, example, .. } = cause;
    Alert {
        kind: "deadLetters",
        id: id.clone(),
        code: Some((*code).to_owned()),
        cause: Some(fingerprint.clone()),
        message: example.clone(),
        text: format!("Hapax: new cause of dead letters in {id}: {code} {fingerprint}. `hapax dlq list` shows them"),
        at_ms: now_ms(),
    }
}

#[cfg(test)]
mod tests {
    use hapax_engine::runtime::Trouble;
    use hapax_model::letter::Stage;

    use super::*;

    /// Goal: each piece of news is told once, and again only after it was over. Method: readings by hand.
    #[test]
    fn news_is_told_once() {
        let id = DeliveryId { workflow: "w".into(), sink: "s".into(), lane: "l".into() };
        let mut seen = Seen::default();
        let mut reading = Reading { state: WorkerState::Running, ..Reading::default() };
        assert_eq!(seen.plain_news(&id, &reading), []);
        reading.ledger.totals.read = 5;
        let alerts = seen.plain_news(&id, &reading);
        assert_eq!(alerts.iter().map(|alert| alert.kind).collect::<Vec<_>>(), ["ledger"]);
        assert!(alerts[0].text.contains("does not add up: read 5 is not delivered 0"), "{alerts:?}");
        assert_eq!(seen.plain_news(&id, &reading), []);
        reading.ledger.totals.delivered = 5;
        reading.state = WorkerState::Stopped;
        reading.trouble = Some(Trouble { code: "HX4012", message: "changed".into(), since_ms: 1 });
        let alerts = seen.plain_news(&id, &reading);
        assert_eq!((alerts.len(), alerts[0].kind, alerts[0].code.as_deref()), (1, "stopped", Some("HX4012")));
        assert_eq!(seen.plain_news(&id, &reading), []);
        let cause = |fingerprint: &str, count| CauseCount {
            stage: Stage::Map,
            code: "HX2020",
            fingerprint: fingerprint.into(),
            example: "x".into(),
            count,
        };
        reading.causes = vec![cause("a", 1), cause("b", 1)];
        assert_eq!(seen.fresh_causes(&reading).len(), 2);
        reading.causes = vec![cause("a", 9), cause("b", 1), cause("c", 1)];
        assert_eq!(seen.fresh_causes(&reading), [cause("c", 1)]);
    }
}
