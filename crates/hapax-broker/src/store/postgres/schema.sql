-- The log in PostgreSQL. No foreign keys: they would make other people's transactions lock these rows.
-- Hot tables are only ever inserted into; a row that is updated per commit slows without bound under any old open
-- transaction of the database. Every function is one autocommit statement of the broker: no lock outlives a round trip.
-- Where a function waits for a row, it reads other tables in a later statement: only that one sees what it waited for.

CREATE TABLE kafka.meta (name text PRIMARY KEY, value text NOT NULL);

CREATE TABLE kafka.brokers (id int PRIMARY KEY, incarnation uuid NOT NULL, host text NOT NULL, port int NOT NULL,
  lease_until timestamptz NOT NULL) WITH (fillfactor = 20);

CREATE TABLE kafka.topics (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, uuid uuid NOT NULL UNIQUE DEFAULT gen_random_uuid(),
  name text COLLATE "C" NOT NULL UNIQUE, partitions int NOT NULL, config jsonb NOT NULL DEFAULT '{}');
-- Of two brokers that make topics whose names differ in . and _ only, at the same time, one wins.
CREATE UNIQUE INDEX topics_by_metric_name ON kafka.topics (replace(name, '.', '_'));

CREATE TABLE kafka.partitions (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, topic_id int NOT NULL, index int NOT NULL,
  leader int, leader_epoch int NOT NULL DEFAULT 0, log_start bigint NOT NULL DEFAULT 0, UNIQUE (topic_id, index)) WITH (fillfactor = 50);

CREATE TABLE kafka.leader_epochs (partition_id int, epoch int, start_offset bigint NOT NULL, PRIMARY KEY (partition_id, epoch));

-- A row is what one commit appended to one partition: wire batches end to end. high_ts is the greatest timestamp so far.
CREATE TABLE kafka.batches (partition_id int, base_offset bigint, last_offset bigint NOT NULL, size int NOT NULL, high_ts bigint NOT NULL,
  data bytea NOT NULL, PRIMARY KEY (partition_id, base_offset))
  WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
    toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 2000, toast.autovacuum_vacuum_cost_delay = 0);
CREATE INDEX batches_by_time ON kafka.batches (partition_id, high_ts, base_offset);
DO $$ BEGIN
  ALTER TABLE kafka.batches ALTER COLUMN data SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
  -- A server without lz4: its own compression is slower than the disk.
  ALTER TABLE kafka.batches ALTER COLUMN data SET STORAGE EXTERNAL;
END $$;

-- Partitions of removed topics whose batches are still to be removed, a slice at a time.
CREATE TABLE kafka.dropped (partition_id int PRIMARY KEY);

-- Who got which producer id.
CREATE SEQUENCE kafka.producer_id_blocks INCREMENT 1000 MINVALUE 0 START 0;
CREATE TABLE kafka.producer_ids (producer_id bigint PRIMARY KEY, epoch smallint NOT NULL DEFAULT 0, client_id text, transactional_id text COLLATE "C",
  created_at timestamptz NOT NULL DEFAULT now(), last_active_at timestamptz NOT NULL DEFAULT now());
CREATE UNIQUE INDEX idx_producer_ids_txn_id ON kafka.producer_ids (transactional_id) WHERE transactional_id IS NOT NULL;

-- The producers of a partition as of offset `upto`; what came later is in the headers of the batches.
-- ring: the last batches, oldest first, 24 bytes each: first and last sequence, base offset, timestamp.
CREATE TABLE kafka.snapshots (partition_id int PRIMARY KEY, upto bigint NOT NULL);
CREATE TABLE kafka.producer_sequences (producer_id bigint, topic_id int, partition_id int, epoch smallint NOT NULL, last_sequence int NOT NULL DEFAULT -1,
  ring bytea NOT NULL, open_since bigint, upto bigint NOT NULL, updated_at timestamptz NOT NULL, PRIMARY KEY (producer_id, topic_id, partition_id));
CREATE INDEX producer_sequences_by_partition ON kafka.producer_sequences (partition_id);

-- state: 0 Empty, 1 Ongoing, 2 PrepareCommit, 3 PrepareAbort, 4 CompleteCommit, 5 CompleteAbort; serial counts the transactions of an id.
CREATE TABLE kafka.transactions (id text COLLATE "C" PRIMARY KEY, revision bigint NOT NULL, serial bigint NOT NULL, state smallint NOT NULL,
  version smallint NOT NULL, producer_id bigint NOT NULL, epoch smallint NOT NULL, last_epoch smallint NOT NULL, prev_producer_id bigint NOT NULL,
  next_producer_id bigint NOT NULL, timeout_ms int NOT NULL, started timestamptz, updated timestamptz NOT NULL, pending int NOT NULL DEFAULT 0)
  WITH (fillfactor = 50);
CREATE TABLE kafka.txn_partitions (txn text COLLATE "C", serial bigint, partition_id int, producer_id bigint NOT NULL, first_offset bigint,
  outcome smallint, marker_epoch smallint, PRIMARY KEY (txn, serial, partition_id));
CREATE INDEX txn_partitions_due ON kafka.txn_partitions (partition_id) WHERE outcome IS NOT NULL;
CREATE TABLE kafka.txn_offsets (txn text COLLATE "C", serial bigint, group_id text COLLATE "C", topic_id int, index int, "offset" bigint NOT NULL,
  leader_epoch int NOT NULL, metadata text, PRIMARY KEY (txn, serial, group_id, topic_id, index));
CREATE TABLE kafka.aborted (partition_id int, last_offset bigint, first_offset bigint NOT NULL, producer_id bigint NOT NULL,
  PRIMARY KEY (partition_id, last_offset));

-- Who coordinates groups: a group belongs to the shard that its name hashes to.
CREATE TABLE kafka.shards (id smallint PRIMARY KEY, leader int, epoch int NOT NULL DEFAULT 0) WITH (fillfactor = 20);
INSERT INTO kafka.shards (id) SELECT generate_series(0, 15);
CREATE TABLE kafka.groups (id text COLLATE "C" PRIMARY KEY, shard smallint NOT NULL, revision bigint NOT NULL DEFAULT 1, empty_since timestamptz,
  state bytea NOT NULL) WITH (fillfactor = 50);
CREATE TABLE kafka.group_offsets (group_id text COLLATE "C", topic_id int, index int, "offset" bigint NOT NULL, leader_epoch int NOT NULL DEFAULT -1,
  metadata text, committed timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (group_id, topic_id, index)) WITH (fillfactor = 50);

CREATE FUNCTION kafka.ms(t timestamptz) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS
  $$ SELECT (extract(epoch FROM t) * 1000)::bigint $$;
CREATE FUNCTION kafka.at(ms bigint) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS
  $$ SELECT timestamptz 'epoch' + ms * interval '1 millisecond' $$;

-- The brokers that live: the lease is not over, and the session that holds the broker's number is there.
CREATE FUNCTION kafka.living() RETURNS int[] LANGUAGE sql VOLATILE AS $$
  SELECT coalesce(array_agg(b.id ORDER BY b.id), '{}') FROM kafka.brokers b WHERE b.lease_until > clock_timestamp()
    AND EXISTS (SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2
      AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
      AND l.classid = 1214345336 AND l.objid = b.id::oid)
$$;

CREATE FUNCTION kafka.lead(me int, ids int[])
RETURNS TABLE (partition_id int, epoch int, log_start bigint, next_offset bigint, high_ts bigint) LANGUAGE plpgsql AS $$
DECLARE won int[]; living int[];
BEGIN
  PERFORM 1 FROM kafka.partitions q WHERE q.id = ANY (ids) ORDER BY q.id FOR NO KEY UPDATE;
  living := kafka.living();
  WITH w AS (UPDATE kafka.partitions q SET leader = me, leader_epoch = q.leader_epoch + 1
      WHERE q.id = ANY (ids) AND (q.leader IS NULL OR q.leader = me OR NOT q.leader = ANY (living)) RETURNING q.id)
    SELECT array_agg(w.id) INTO won FROM w;
  RETURN QUERY
    WITH ends AS (SELECT q.id, q.leader_epoch, q.log_start AS start, greatest(q.log_start, coalesce(l.last_offset + 1, 0)) AS upto,
          coalesce(l.high_ts, -1) AS high FROM kafka.partitions q
        LEFT JOIN LATERAL (SELECT b.last_offset, b.high_ts FROM kafka.batches b WHERE b.partition_id = q.id ORDER BY b.base_offset DESC LIMIT 1) l ON true
        WHERE q.id = ANY (won)),
      noted AS (INSERT INTO kafka.leader_epochs SELECT x.id, x.leader_epoch, x.upto FROM ends x)
    SELECT x.id, x.leader_epoch, x.start, x.upto, x.high FROM ends x ORDER BY x.id;
END $$;

-- A group commit: all or nothing. Empty = committed; else the culprits, and nothing was written.
CREATE FUNCTION kafka.append(p int[], e int[], b_p int[], b_base bigint[], b_last bigint[], b_size int[], b_high bigint[], b_data bytea[])
RETURNS TABLE (what text, which int, code int) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM kafka.partitions q WHERE q.id = ANY (p) ORDER BY q.id FOR SHARE;
  RETURN QUERY SELECT 'partition', u.id, 6 FROM unnest(p, e) u(id, epoch)
    WHERE NOT EXISTS (SELECT FROM kafka.partitions q WHERE q.id = u.id AND q.leader_epoch = u.epoch);
  IF FOUND THEN RETURN; END IF;
  INSERT INTO kafka.batches (partition_id, base_offset, last_offset, size, high_ts, data)
    SELECT * FROM unnest(b_p, b_base, b_last, b_size, b_high, b_data);
END $$;

-- Whether partition p is led under epoch e; it stays so until the end of the statement.
CREATE FUNCTION kafka.led(p int, e int) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM kafka.partitions q WHERE q.id = p AND q.leader_epoch = e FOR SHARE;
  RETURN FOUND;
END $$;

-- Bytes removed; -1: led under another epoch.
CREATE FUNCTION kafka.trim(p int, e int, max_bytes bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE start bigint; newest bigint; removed bigint;
BEGIN
  IF NOT kafka.led(p, e) THEN RETURN -1; END IF;
  SELECT q.log_start INTO start FROM kafka.partitions q WHERE q.id = p;
  SELECT max(b.base_offset) INTO newest FROM kafka.batches b WHERE b.partition_id = p;
  WITH doomed AS (SELECT r.base_offset FROM (SELECT b.base_offset, sum(b.size) OVER (ORDER BY b.base_offset) - b.size AS before FROM kafka.batches b
        WHERE b.partition_id = p AND b.base_offset < newest AND b.base_offset < start AND b.last_offset < start ORDER BY b.base_offset LIMIT 10000) r
        WHERE r.before < max_bytes),
    gone AS (DELETE FROM kafka.batches b USING doomed d WHERE b.partition_id = p AND b.base_offset = d.base_offset RETURNING b.size)
    SELECT coalesce(sum(g.size), 0) INTO removed FROM gone g;
  DELETE FROM kafka.aborted a WHERE a.partition_id = p AND a.last_offset < start;
  -- An epoch whose successor begins at or below the start has nothing left to tell.
  DELETE FROM kafka.leader_epochs l WHERE l.partition_id = p
    AND EXISTS (SELECT FROM kafka.leader_epochs n WHERE n.partition_id = p AND n.epoch > l.epoch AND n.start_offset <= start);
  RETURN removed;
END $$;

-- Puts other data into rows (NULL removes the row). 0: done; 1: led under another epoch; 2: one is the newest, whose end is the log's.
CREATE FUNCTION kafka.replace_rows(p int, e int, bases bigint[], datas bytea[]) RETURNS int LANGUAGE plpgsql AS $$
DECLARE newest bigint;
BEGIN
  IF NOT kafka.led(p, e) THEN RETURN 1; END IF;
  SELECT max(b.base_offset) INTO newest FROM kafka.batches b WHERE b.partition_id = p;
  IF newest = ANY (bases) THEN RETURN 2; END IF;
  UPDATE kafka.batches b SET data = u.data, size = length(u.data) FROM unnest(bases, datas) u(base, data)
    WHERE b.partition_id = p AND b.base_offset = u.base AND u.data IS NOT NULL;
  DELETE FROM kafka.batches b USING unnest(bases, datas) u(base, data)
    WHERE b.partition_id = p AND b.base_offset = u.base AND u.data IS NULL;
  RETURN 0;
END $$;

CREATE FUNCTION kafka.save_snapshot(p int, e int, reach bigint, ids bigint[], epochs smallint[], lasts int[], rings bytea[], opens bigint[], updates bigint[])
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE topic int;
BEGIN
  IF NOT kafka.led(p, e) THEN RETURN false; END IF;
  SELECT q.topic_id INTO topic FROM kafka.partitions q WHERE q.id = p;
  INSERT INTO kafka.snapshots AS s (partition_id, upto) SELECT p, reach WHERE reach > 0
    ON CONFLICT (partition_id) DO UPDATE SET upto = EXCLUDED.upto WHERE s.upto < EXCLUDED.upto;
  IF NOT FOUND THEN RETURN true; END IF;
  DELETE FROM kafka.producer_sequences s WHERE s.partition_id = p AND NOT EXISTS (SELECT FROM unnest(ids) u(id) WHERE u.id = s.producer_id);
  -- Producers that wrote nothing since keep their row as it is.
  INSERT INTO kafka.producer_sequences AS s (producer_id, topic_id, partition_id, epoch, last_sequence, ring, open_since, upto, updated_at)
    SELECT u.id, topic, p, u.epoch, u.last, u.ring, u.open, reach, kafka.at(u.updated)
      FROM unnest(ids, epochs, lasts, rings, opens, updates) u(id, epoch, last, ring, open, updated)
    ON CONFLICT (producer_id, topic_id, partition_id) DO UPDATE SET epoch = EXCLUDED.epoch, last_sequence = EXCLUDED.last_sequence, ring = EXCLUDED.ring,
      open_since = EXCLUDED.open_since, upto = EXCLUDED.upto, updated_at = EXCLUDED.updated_at
    WHERE (s.epoch, s.ring, s.open_since, s.updated_at) IS DISTINCT FROM (EXCLUDED.epoch, EXCLUDED.ring, EXCLUDED.open_since, EXCLUDED.updated_at);
  -- Who writes is active; to the minute is enough, and spares a row version per producer and snapshot.
  UPDATE kafka.producer_ids i SET last_active_at = kafka.at(u.updated) FROM unnest(ids, updates) u(id, updated)
    WHERE i.producer_id = u.id AND i.last_active_at < kafka.at(u.updated) - interval '1 minute';
  RETURN true;
END $$;

CREATE FUNCTION kafka.grow_topic(t int, count int) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE had int;
BEGIN
  SELECT x.partitions INTO had FROM kafka.topics x WHERE x.id = t AND x.partitions < count FOR UPDATE;
  IF NOT FOUND THEN RETURN false; END IF;
  INSERT INTO kafka.partitions (topic_id, index) SELECT t, generate_series(had, count - 1);
  UPDATE kafka.topics x SET partitions = count WHERE x.id = t;
  RETURN true;
END $$;

-- All but the batches, which go a slice at a time: see sweep.
CREATE FUNCTION kafka.delete_topic(t int) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE gone int[];
BEGIN
  DELETE FROM kafka.topics x WHERE x.id = t;
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM 1 FROM kafka.partitions q WHERE q.topic_id = t ORDER BY q.id FOR UPDATE;
  WITH d AS (DELETE FROM kafka.partitions q WHERE q.topic_id = t RETURNING q.id) SELECT array_agg(d.id) INTO gone FROM d;
  DELETE FROM kafka.leader_epochs x WHERE x.partition_id = ANY (gone);
  DELETE FROM kafka.snapshots x WHERE x.partition_id = ANY (gone);
  DELETE FROM kafka.producer_sequences x WHERE x.partition_id = ANY (gone);
  DELETE FROM kafka.aborted x WHERE x.partition_id = ANY (gone);
  DELETE FROM kafka.group_offsets x WHERE x.topic_id = t;
  INSERT INTO kafka.dropped SELECT unnest(gone);
  RETURN true;
END $$;

-- Removes at most 200 rows of one partition that is no more. False: nothing is left.
CREATE FUNCTION kafka.sweep() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE p int;
BEGIN
  SELECT d.partition_id INTO p FROM kafka.dropped d ORDER BY 1 LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN false; END IF;
  DELETE FROM kafka.batches b WHERE b.partition_id = p
    AND b.base_offset IN (SELECT x.base_offset FROM kafka.batches x WHERE x.partition_id = p ORDER BY x.base_offset LIMIT 200);
  IF NOT FOUND THEN DELETE FROM kafka.dropped d WHERE d.partition_id = p; END IF;
  RETURN true;
END $$;

-- Notes who has a producer id; a known one gets the newer epoch.
CREATE FUNCTION kafka.note_producer(pid bigint, new_epoch smallint, client text, txn text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE kafka.producer_ids x SET transactional_id = NULL WHERE x.transactional_id = txn AND x.producer_id <> pid;
  INSERT INTO kafka.producer_ids AS x (producer_id, epoch, client_id, transactional_id) VALUES (pid, new_epoch, client, txn)
    ON CONFLICT (producer_id) DO UPDATE SET epoch = greatest(x.epoch, EXCLUDED.epoch), client_id = coalesce(EXCLUDED.client_id, x.client_id),
      transactional_id = coalesce(EXCLUDED.transactional_id, x.transactional_id), last_active_at = clock_timestamp();
END $$;

-- Writes a transactional id if it still stands at `expected` (NULL: is not there).
CREATE FUNCTION kafka.swap_transactional(expected bigint, t text, rev bigint, ser bigint, st smallint, ver smallint, pid bigint, ep smallint,
  last_ep smallint, prev_pid bigint, next_pid bigint, timeout int, at_ms bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF expected IS NULL THEN
    INSERT INTO kafka.transactions (id, revision, serial, state, version, producer_id, epoch, last_epoch, prev_producer_id, next_producer_id, timeout_ms, updated)
      VALUES (t, rev, ser, st, ver, pid, ep, last_ep, prev_pid, next_pid, timeout, kafka.at(at_ms)) ON CONFLICT (id) DO NOTHING;
  ELSE
    UPDATE kafka.transactions x SET revision = rev, serial = ser, state = st, version = ver, producer_id = pid, epoch = ep, last_epoch = last_ep,
        prev_producer_id = prev_pid, next_producer_id = next_pid, timeout_ms = timeout, updated = kafka.at(at_ms)
      WHERE x.id = t AND x.revision = expected;
  END IF;
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM kafka.note_producer(pid, ep, NULL, t);
  RETURN true;
END $$;

-- The epochs of all shards, each raised by one; NULL: a broker that lives has one of them.
CREATE FUNCTION kafka.lead_groups(me int) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE living int[]; epochs int[];
BEGIN
  PERFORM 1 FROM kafka.shards s ORDER BY s.id FOR NO KEY UPDATE;
  living := kafka.living();
  IF EXISTS (SELECT FROM kafka.shards s WHERE s.leader <> me AND s.leader = ANY (living)) THEN RETURN NULL; END IF;
  UPDATE kafka.shards s SET leader = me, epoch = s.epoch + 1;
  SELECT array_agg(s.epoch ORDER BY s.id) INTO epochs FROM kafka.shards s;
  RETURN epochs;
END $$;

-- Whether these shards have these epochs; they keep them until the end of the statement.
CREATE FUNCTION kafka.coordinated(s int[], e int[]) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM kafka.shards x WHERE x.id = ANY (s) ORDER BY x.id FOR SHARE;
  RETURN NOT EXISTS (SELECT FROM unnest(s, e) u(id, epoch) WHERE NOT EXISTS (SELECT FROM kafka.shards x WHERE x.id = u.id AND x.epoch = u.epoch));
END $$;

CREATE FUNCTION kafka.save_group(s int[], e int[], g text, empty_ms bigint, blob bytea) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF NOT kafka.coordinated(s, e) THEN RETURN false; END IF;
  INSERT INTO kafka.groups AS x (id, shard, empty_since, state) VALUES (g, s[1], kafka.at(empty_ms), blob)
    ON CONFLICT (id) DO UPDATE SET revision = x.revision + 1, empty_since = EXCLUDED.empty_since, state = EXCLUDED.state;
  RETURN true;
END $$;

CREATE FUNCTION kafka.delete_groups(s int[], e int[], ids text[]) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF NOT kafka.coordinated(s, e) THEN RETURN false; END IF;
  DELETE FROM kafka.groups x WHERE x.id = ANY (ids);
  DELETE FROM kafka.group_offsets x WHERE x.group_id = ANY (ids);
  RETURN true;
END $$;

CREATE FUNCTION kafka.commit_offsets(s int[], e int[], g text[], t int[], i int[], o bigint[], l int[], m text[], c bigint[])
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF NOT kafka.coordinated(s, e) THEN RETURN false; END IF;
  INSERT INTO kafka.group_offsets (group_id, topic_id, index, "offset", leader_epoch, metadata, committed)
    SELECT u.g, u.t, u.i, u.o, u.l, u.m, kafka.at(u.c) FROM unnest(g, t, i, o, l, m, c) u(g, t, i, o, l, m, c) ORDER BY u.g COLLATE "C", u.t, u.i
    ON CONFLICT (group_id, topic_id, index) DO UPDATE SET "offset" = EXCLUDED."offset", leader_epoch = EXCLUDED.leader_epoch,
      metadata = EXCLUDED.metadata, committed = EXCLUDED.committed;
  RETURN true;
END $$;

CREATE FUNCTION kafka.delete_offsets(s int[], e int[], g text, t int[], i int[]) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF NOT kafka.coordinated(s, e) THEN RETURN false; END IF;
  DELETE FROM kafka.group_offsets x USING unnest(t, i) u(t, i) WHERE x.group_id = g AND x.topic_id = u.t AND x.index = u.i;
  RETURN true;
END $$;

-- Stops leading: another may lead at once.
CREATE FUNCTION kafka.give_back(me int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM kafka.partitions q WHERE q.leader = me ORDER BY q.id FOR NO KEY UPDATE;
  UPDATE kafka.partitions q SET leader = NULL WHERE q.leader = me;
  PERFORM 1 FROM kafka.shards s WHERE s.leader = me ORDER BY s.id FOR NO KEY UPDATE;
  UPDATE kafka.shards s SET leader = NULL WHERE s.leader = me;
END $$;

INSERT INTO kafka.meta VALUES ('schema_version', '1'),
  ('cluster_id', translate(rtrim(encode(uuid_send(gen_random_uuid()), 'base64'), '='), '+/', '-_'));
