//! SQLite: a session on a thread of its own, quoting, the checked COMMIT, and who holds the lock.

mod commit;
mod holder;
mod place;
mod quote;
mod session;

pub use commit::{CommitEnd, checked_commit};
pub use holder::{holder, writer};
pub use place::{make_folder, make_private, why_not_made};
pub use quote::{QuoteError, quote_identifier};
pub use session::{Open, OpenError, Session, SessionLost, open_to_look};
