<?php
// Keeps its worker for a given time. A worker that has just become free counts from when it should have, so that late
// sleeps do not add up; nothing but a file outlives a request here.
$late = 0.01;
$file = __DIR__ . '/free-' . getmypid();
$now = microtime(true);
$free = is_file($file) ? (float) file_get_contents($file) : 0;
$end = ($now - $free < $late ? $free : $now) + getenv('HOLD_US') / 1e6;
usleep((int) max(0, 1e6 * ($end - microtime(true))));
file_put_contents($file, $end);
header('Content-Length: 2');
echo 'ok';
