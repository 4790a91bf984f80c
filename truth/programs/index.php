<?php
// Keeps its worker for a given time.
usleep((int) getenv('HOLD_US'));
header('Content-Length: 2');
echo 'ok';
