//! The table `rooms`.

use store::{OpenError, Row, Setup, Statement, Store, StoreError};

use crate::values::{
    day::{Day, DayRange},
    room::{Room, Slot},
};

/// A room to insert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewRoom {
    pub(crate) name: String,
    pub(crate) slots: Vec<Slot>,
}

impl NewRoom {
    pub(crate) fn statement(&self) -> Statement {
        let insert = "INSERT INTO rooms (name, slots) VALUES (?, ?)";
        Statement::new(insert).with(self.name.as_str()).with(Slot::list(&self.slots))
    }
}

/// Reads at most `limit` rooms before a server starts. Skips rooms that cannot be read: a request for one gets the error.
pub(crate) fn first_rooms(setup: &mut Setup, limit: i64) -> Result<Vec<Room>, OpenError> {
    Ok(setup.query(&list(0, limit))?.iter().filter_map(|row| room(row).ok()).collect())
}

fn list(after: i64, limit: i64) -> Statement {
    let select = "SELECT id, name, slots FROM rooms WHERE id > ? ORDER BY id LIMIT ?";
    Statement::new(select).with(after).with(limit)
}

/// The table `rooms`.
#[derive(Debug)]
pub(crate) struct RoomTable<'s> {
    store: &'s Store,
}

impl<'s> RoomTable<'s> {
    pub(crate) fn new(store: &'s Store) -> Self {
        Self { store }
    }

    /// Adds a room and returns its number, or `None` if the name is taken.
    pub(crate) async fn add(&self, new: &NewRoom) -> Result<Option<i64>, StoreError> {
        self.store.insert_id(new.statement()).await
    }

    /// The room with this number.
    pub(crate) async fn get(&self, id: i64) -> Result<Option<Room>, StoreError> {
        let select = Statement::new("SELECT id, name, slots FROM rooms WHERE id = ?").with(id);
        self.store.query(select).await?.first().map(room).transpose()
    }

    /// At most `limit` rooms after this number, in order.
    pub(crate) async fn list(&self, after: i64, limit: i64) -> Result<Vec<Room>, StoreError> {
        let rows = self.store.query(list(after, limit)).await?;
        rows.iter().map(room).collect()
    }

    /// At most `limit` rooms that are booked by whole days and free on this day, from number `from` upwards.
    pub(crate) async fn free_on(&self, day: Day, from: i64, limit: i64) -> Result<Vec<i64>, StoreError> {
        let select = "SELECT id FROM rooms WHERE id >= ? AND slots = '' AND NOT EXISTS (SELECT 1 FROM standing \
                      WHERE room = rooms.id AND day = ? AND slot = '') ORDER BY id LIMIT ?";
        let rows =
            self.store.query(Statement::new(select).with(from).with(day.to_string()).with(limit)).await?;
        rows.iter().map(|row| row.int(0)).collect()
    }

    /// How many rooms are booked by whole days.
    pub(crate) async fn count_of_whole_days(&self) -> Result<i64, StoreError> {
        let rows = self.store.query(Statement::new("SELECT COUNT(*) FROM rooms WHERE slots = ''")).await?;
        rows.first().map_or(Ok(0), |row| row.int(0))
    }

    /// For each day with bookings, how many rooms are booked for the whole day.
    pub(crate) async fn booked_by_day(&self, days: DayRange) -> Result<Vec<(Day, i64)>, StoreError> {
        let select = "SELECT day, COUNT(*) FROM rooms JOIN standing ON room = rooms.id \
                      WHERE slot = '' AND day >= ? AND day <= ? GROUP BY day ORDER BY day";
        let select = Statement::new(select).with(days.from.to_string()).with(days.to.to_string());
        let rows = self.store.query(select).await?;
        let by_day = |row: &Row| {
            let day = Day::parse(row.text(0)?).map_err(|_| StoreError::Failed)?;
            Ok((day, row.int(1)?))
        };
        rows.iter().map(by_day).collect()
    }
}

fn room(row: &Row) -> Result<Room, StoreError> {
    let slots = Slot::parse_list(row.text(2)?).map_err(|_| StoreError::Failed)?;
    Ok(Room { id: row.int(0)?, name: row.text(1)?.to_owned(), slots })
}
