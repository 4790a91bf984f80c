-- The index of those that stand begins with the room, as the foreign key needs one that does: a booking then changes a random
-- page of one index, not of two. Within a room those that stand still lie together.
SET @second = (SELECT COUNT(*) > 0 FROM information_schema.statistics WHERE table_schema = DATABASE()
    AND table_name = 'bookings' AND index_name = 'bookings_by_room');
SET @change = IF(@second, 'ALTER TABLE bookings
    DROP INDEX bookings_that_stand,
    ADD UNIQUE INDEX bookings_that_stand (room, stands, day, slot),
    DROP INDEX bookings_by_room', 'DO 0');
PREPARE change_table FROM @change;
EXECUTE change_table;
DEALLOCATE PREPARE change_table;
