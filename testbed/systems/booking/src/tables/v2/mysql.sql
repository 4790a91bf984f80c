-- Those that stand lie together, so that none that was cancelled is read with them. Rooms need an index of their own then.
SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.statistics WHERE table_schema = DATABASE()
    AND table_name = 'bookings' AND index_name = 'bookings_by_room');
SET @change = IF(@missing, 'ALTER TABLE bookings
    DROP INDEX bookings_that_stand,
    ADD UNIQUE INDEX bookings_that_stand (stands, room, day, slot),
    ADD INDEX bookings_by_room (room)', 'DO 0');
PREPARE change_table FROM @change;
EXECUTE change_table;
DEALLOCATE PREPARE change_table;
CREATE OR REPLACE SQL SECURITY INVOKER VIEW standing AS SELECT room, day, slot FROM bookings WHERE stands = 1;
