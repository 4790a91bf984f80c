CREATE VIEW standing AS SELECT room, day, slot FROM bookings WHERE cancelled_at_us IS NULL;
