#!/bin/bash
# Run once by the PostgreSQL image, when its volume is empty: the user of agents and workers, and the roles that it acts in.
set -euo pipefail

psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
    --set app_password="$STRANDLINE_APP_PASSWORD" <<'SQL'
CREATE DATABASE strandline ENCODING 'UTF8' TEMPLATE template0;
CREATE ROLE strandline_app NOLOGIN NOBYPASSRLS;
CREATE ROLE strandline_sweep NOLOGIN NOBYPASSRLS;
CREATE ROLE strandline_operator NOLOGIN NOBYPASSRLS;
CREATE ROLE strandline LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS PASSWORD :'app_password';
GRANT strandline_app, strandline_sweep TO strandline;
REVOKE ALL ON DATABASE strandline FROM PUBLIC;
GRANT CONNECT ON DATABASE strandline TO strandline;
SQL
