//! Values that a `delivery:` block cannot have, whatever it promises.

use std::time::Duration;

use super::Delivery;

/// A value that makes no sense, with the field that holds it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("delivery.{field}: {what}; {cure}")]
pub struct DeliveryProblem {
    /// The error code.
    pub code: &'static str,
    /// Path of the field below `delivery`, as written in the file.
    pub field: &'static str,
    /// What is wrong.
    pub what: String,
    /// What to write instead.
    pub cure: &'static str,
}

const OUT_OF_BOUNDS: &str = "HX1150";
const KEY_FIELDS: &str = "HX1151";

impl Delivery {
    /// All values that make no sense, in the order of the block; empty if it is sound.
    #[must_use]
    pub fn problems(&self) -> Vec<DeliveryProblem> {
        let mut found = Vec::new();
        let mut note = |code, field, what: &str, cure| {
            found.push(DeliveryProblem { code, field, what: what.to_owned(), cure });
        };
        let fields = &self.deduplication.key_fields;
        if self.deduplication.unique && fields.is_empty() {
            let cure = "name the fields in keyFields, or leave unique out";
            note(KEY_FIELDS, "deduplication.unique", "says that keyFields name an event, but there are none", cure);
        }
        if let Some(twice) = fields.iter().enumerate().find(|(at, field)| fields[..*at].contains(field)) {
            let what = format!("names {} twice", twice.1);
            note(KEY_FIELDS, "deduplication.keyFields", &what, "name each field once");
        }
        if self.retries.max_attempts == 0 {
            let cure = "write at least 1: the first attempt counts";
            note(OUT_OF_BOUNDS, "retries.maxAttempts", "0 would never try at all", cure);
        }
        if self.retries.enabled && self.retries.max_attempts > 1 && self.retries.backoff.is_empty() {
            let cure = "write at least one wait, such as [1000]; the last one repeats";
            note(OUT_OF_BOUNDS, "retries.backoffMs", "an empty list would try again without a pause", cure);
        }
        for (field, value) in [("epoch.maxEvents", self.epoch.max_events), ("epoch.maxBytes", self.epoch.max_bytes.0)] {
            if value == 0 {
                note(OUT_OF_BOUNDS, field, "0 leaves no room for a single event", "write a number above 0");
            }
        }
        for (field, value) in self.durations() {
            if value.is_zero() {
                note(OUT_OF_BOUNDS, field, "0 is no time at all", "write a duration above 0, such as 1s");
            }
        }
        found
    }

    fn durations(&self) -> impl Iterator<Item = (&'static str, Duration)> {
        let always = [
            ("retries.giveUpAfter", self.retries.give_up_after),
            ("epoch.interval", self.epoch.interval),
            ("epoch.commitTimeout", self.epoch.commit_timeout),
            ("epoch.abortTimeout", self.epoch.abort_timeout),
            ("claimTimeout", self.claim_timeout),
            ("lease", self.lease),
            ("progressInterval", self.progress_interval),
        ];
        let written = [("deduplication.ttl", self.deduplication.ttl), ("receiver.keyTtl", self.receiver.key_ttl)];
        always.into_iter().chain(written.into_iter().filter_map(|(field, value)| Some((field, value?))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::FieldPath;
    use crate::units::ByteSize;

    type Break = fn(&mut Delivery);

    /// Goal: each senseless value is found and named, and the default has none. Method: break one field at a time. (A file is
    /// told of most of them before, by the bounds of its fields; who builds the block by hand is told here.)
    #[test]
    fn a_senseless_value_is_named() {
        assert_eq!(Delivery::default().problems(), []);
        let breaks: [(&str, Break); 15] = [
            ("deduplication.unique", |d| d.deduplication.unique = true),
            ("deduplication.keyFields", |d| d.deduplication.key_fields = vec![FieldPath::of_name("id"); 2]),
            ("deduplication.ttl", |d| d.deduplication.ttl = Some(Duration::ZERO)),
            ("retries.maxAttempts", |d| d.retries.max_attempts = 0),
            ("retries.backoffMs", |d| d.retries.backoff.clear()),
            ("retries.giveUpAfter", |d| d.retries.give_up_after = Duration::ZERO),
            ("epoch.interval", |d| d.epoch.interval = Duration::ZERO),
            ("epoch.maxEvents", |d| d.epoch.max_events = 0),
            ("epoch.maxBytes", |d| d.epoch.max_bytes = ByteSize(0)),
            ("epoch.commitTimeout", |d| d.epoch.commit_timeout = Duration::ZERO),
            ("epoch.abortTimeout", |d| d.epoch.abort_timeout = Duration::ZERO),
            ("claimTimeout", |d| d.claim_timeout = Duration::ZERO),
            ("lease", |d| d.lease = Duration::ZERO),
            ("progressInterval", |d| d.progress_interval = Duration::ZERO),
            ("receiver.keyTtl", |d| d.receiver.key_ttl = Some(Duration::ZERO)),
        ];
        for (field, break_it) in breaks {
            let mut delivery = Delivery::default();
            break_it(&mut delivery);
            let code = if field.contains("unique") || field.contains("keyFields") { "HX1151" } else { "HX1150" };
            let found: Vec<_> = delivery.problems().iter().map(|problem| (problem.field, problem.code)).collect();
            assert_eq!(found, [(field, code)]);
        }
    }
}
