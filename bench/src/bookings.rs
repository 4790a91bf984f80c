//! Which rooms and days the bookings' bench books, over HTTP and without.

/// Rooms that each of the most users books in turn, and fewer users more of them; with the days in turn, so many times as
/// many bookings before one is met again.
pub const ROOMS_PER_USER: u32 = 4;
/// Days that are booked in turn, a prime number.
pub const DAYS: usize = 1_801;

/// The days, from tomorrow on, as a booking names them.
pub fn days() -> Vec<String> {
    let today = jiff::Zoned::now().date();
    let day = |ahead: i32| today.saturating_add(jiff::Span::new().days(ahead)).to_string();
    (1..).map(day).take(DAYS).collect()
}
