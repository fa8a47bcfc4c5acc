//! Sockets: listening, limits, one task per connection, answers in order.
