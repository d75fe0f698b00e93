/**
 * The numbers of changes, `seq`. A change of one membership takes the next number after that of the membership
 * and that of the project. A bulk extension or an import takes the first number of a new round: it knows that
 * no membership has come so far, without looking at any.
 *
 * So the round of no membership is later than that of its project. The membership that is changed as often as a
 * round has numbers takes its number from the project, which is then in the next round.
 */

/**
 * How many numbers a round has. A project can have 90 billion rounds before its numbers are no safe integers: ten
 * bulk extensions a second for 285 years. And a project is locked for every 100,000th change of a member.
 */
export const round = 100_000

/** An expression for the round of a number. */
export const roundOf = (seq: string): string => `${seq} / ${round}`

/** An expression for the first number of the round after that of a number. */
export const nextRound = (seq: string): string => `(${roundOf(seq)} + 1) * ${round}`

/**
 * An expression for the number of a change of a membership, after that of its last change and that of the project.
 * Where the round ends, it locks the project, in a statement that does not update it otherwise.
 *
 * @param last - an expression for the number of the last change of the membership
 * @param project - the name of a row with the columns `project_number`, `project_seq` and `bulk_seq`
 * @param count - how many changes take numbers: an expression, much less than a round. The last one is returned, and
 *   the others have those before it
 */
export const nextSeq = (schema: string, last: string, project: string, count = "1"): string => {
  const later = `greatest(${last}, ${project}.project_seq)`
  return `CASE WHEN ${later} % ${round} < ${round} - ${count} THEN ${later} + ${count}
   ELSE ${schema}.take_seq(${project}.project_number, ${nextRound(later)} - 1, ${project}.bulk_seq) + ${count} - 1 END`
}

/**
 * Creates the function `take_seq`, which raises the seq of a project to the next number after `last`, and returns it.
 *
 * The number is greater than those of all bulk extensions. If there is a later one than the statement knows, which
 * has `known_bulk_seq`, it has read an end date from before that: it is repeated, as after a lost race.
 */
export const createTakeSeq = (schema: string): string => `
  CREATE FUNCTION ${schema}.take_seq(of_project bigint, last bigint, known_bulk_seq bigint) RETURNS bigint
  LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    taken bigint;
    last_bulk_seq bigint;
  BEGIN
    UPDATE ${schema}.projects p SET seq = greatest(p.seq, last) + 1 WHERE p.number = of_project
    RETURNING p.seq, p.bulk_seq INTO taken, last_bulk_seq;
    IF last_bulk_seq <> known_bulk_seq THEN
      RAISE serialization_failure USING MESSAGE = 'a bulk extension was made in between';
    END IF;
    RETURN coalesce(taken, last + 1);
  END $$
`
