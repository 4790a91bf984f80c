//! The rooms' table.

use store::{OpenError, Row, Setup, Statement, Store, StoreError};

use crate::{day::Day, room::Room, slot::Slot};

/// A room to be added.
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

/// At most `limit` rooms, before a server starts. One that cannot be read is left for whoever asks for it.
pub(crate) fn first_rooms(setup: &mut Setup, limit: i64) -> Result<Vec<Room>, OpenError> {
    Ok(setup.query(&list(0, limit))?.iter().filter_map(|row| room(row).ok()).collect())
}

fn list(after: i64, limit: i64) -> Statement {
    let select = "SELECT id, name, slots FROM rooms WHERE id > ? ORDER BY id LIMIT ?";
    Statement::new(select).with(after).with(limit)
}

/// The rooms' table.
#[derive(Debug)]
pub(crate) struct Rooms<'s> {
    store: &'s Store,
}

impl<'s> Rooms<'s> {
    pub(crate) fn new(store: &'s Store) -> Self {
        Self { store }
    }

    /// Adds a room; `None` when there is one of that name.
    pub(crate) async fn add(&self, new: &NewRoom) -> Result<Option<i64>, StoreError> {
        self.store.insert_id(new.statement()).await
    }

    /// One room.
    pub(crate) async fn get(&self, id: i64) -> Result<Option<Room>, StoreError> {
        let select = Statement::new("SELECT id, name, slots FROM rooms WHERE id = ?").with(id);
        self.store.query(select).await?.first().map(room).transpose()
    }

    /// At most `limit` rooms after `after`, in order.
    pub(crate) async fn list(&self, after: i64, limit: i64) -> Result<Vec<Room>, StoreError> {
        let rows = self.store.query(list(after, limit)).await?;
        rows.iter().map(room).collect()
    }

    /// At most `limit` rooms, of this number or a higher one, that are booked by whole days and are free on this one.
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

    /// On how many of them each day is booked, from one day to another; days without bookings are left out.
    pub(crate) async fn booked_by_day(&self, from: Day, to: Day) -> Result<Vec<(Day, i64)>, StoreError> {
        let select = "SELECT day, COUNT(*) FROM standing WHERE slot = '' AND day >= ? AND day <= ? \
                      GROUP BY day ORDER BY day";
        let select = Statement::new(select).with(from.to_string()).with(to.to_string());
        let rows = self.store.query(select).await?;
        let by_day = |row: &Row| {
            let day = Day::read(row.text(0)?).map_err(|_| StoreError::Failed)?;
            Ok((day, row.int(1)?))
        };
        rows.iter().map(by_day).collect()
    }
}

fn room(row: &Row) -> Result<Room, StoreError> {
    let slots = Slot::read_list(row.text(2)?).map_err(|_| StoreError::Failed)?;
    Ok(Room { id: row.int(0)?, name: row.text(1)?.to_owned(), slots })
}
