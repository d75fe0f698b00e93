/** Returns whether the database refuses changes, as a standby does. */
export const ping = "SELECT current_setting('transaction_read_only')::boolean AS read_only"
