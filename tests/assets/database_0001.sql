-- A database of schema 0001, written by version 0.1.0: one of each record in tests/contracts/samples.py.
-- Later versions must go on reading it; it is never changed.
BEGIN TRANSACTION;
CREATE TABLE advisor_advice (
	id INTEGER NOT NULL, 
	workload TEXT NOT NULL, 
	saved_at TEXT NOT NULL, 
	document JSON NOT NULL, 
	CONSTRAINT pk_advisor_advice PRIMARY KEY (id)
);
INSERT INTO "advisor_advice" VALUES(1,'digits','2026-11-30T20:40:18.231356+00:00','{"description": {"name": "digits", "fingerprint": {"model": "m", "optimizer": "o", "loss": "l", "data_shape": "s", "data_content": "c", "target": "t", "configuration": "2 cpu", "versions": "keras 3"}, "target": {"metric": "accuracy", "at_least": 0.97, "at_most": null}, "optimizer": "nesterov", "optimizer_hyperparameters": {"learning_rate": 0.01, "momentum": 0.9}, "search_space": {"dropout": {"low": 0.0, "high": 0.5, "default": 0.0, "log": false, "log_one_minus": false, "kind": "Float"}, "momentum": {"low": 0.5, "high": 0.999, "default": null, "log": false, "log_one_minus": true, "kind": "Float"}, "units": {"low": 16, "high": 256, "default": 64, "log": true, "kind": "Int"}, "depth": {"low": 1, "high": 3, "default": null, "log": false, "kind": "Int"}, "activation": {"choices": ["relu", 1, 2.0, true], "default": "relu", "kind": "Categorical"}}, "examples": {"train": 1437, "validation": 360}, "metrics": ["loss", "accuracy"], "initial_metrics": {"loss": 2.4, "accuracy": 0.1}, "parameter_count": 4810, "configuration": {"workers": 1, "devices": 2, "device_kind": "cpu", "precision": "float32", "xla": false}, "environment": {"python": "3.11"}}, "throughput": {"workload": "digits", "fingerprint": "abc", "configuration": {"workers": 1, "devices": 2, "device_kind": "cpu", "precision": "float32", "xla": false}, "environment": {"python": "3.11"}, "measured_at": "2030-01-02T03:04:05+00:00", "table": [{"batch_size": 64, "outcome": "OK", "detail": "", "time_per_step_s": {"estimate": 2.0, "low": 1.5, "high": {"non_finite": "inf"}, "level": 0.9}, "throughput_examples_per_s": {"estimate": 2.0, "low": 1.5, "high": {"non_finite": "inf"}, "level": 0.9}, "compile_s": 1.25, "peak_memory_bytes": null, "steps_timed": 40, "doubling_efficiency": null}, {"batch_size": 512, "outcome": "OUT_OF_MEMORY", "detail": "no room", "time_per_step_s": null, "throughput_examples_per_s": null, "compile_s": null, "peak_memory_bytes": null, "steps_timed": 0, "doubling_efficiency": null}], "largest_feasible_batch_size": 64, "saturation_batch_size": null, "time_model": {"fixed_s": 0.001, "per_example_s": 2e-06, "residual_log_rms": 0.03}, "notes": ["a note"]}, "prices": {"price_per_device_hour": 2.5, "currency": "EUR", "power_w": 350.0}, "results": [{"batch_size": 64, "best": {"learning_rate": 0.1}, "at_edge": false, "trials": 5, "infeasible": 1, "observations": [{"batch_size": 64, "crossing": {"steps": 18.5, "low": 18.0, "high": 19.0}}, {"batch_size": 64, "crossing": {"steps": null, "low": 50.0, "high": null}}], "steps": 18.5, "steps_interval": {"estimate": 2.0, "low": 1.5, "high": {"non_finite": "inf"}, "level": 0.9}, "censored": false, "log_slack": 0.05}, {"batch_size": 512, "best": null, "at_edge": true, "trials": 5, "infeasible": 5, "observations": [], "steps": null, "steps_interval": null, "censored": true, "log_slack": {"non_finite": "inf"}}], "fit": {"outcome": "LOWER_BOUND", "overhead": 0.2, "min_steps": {"estimate": 2.0, "low": 1.5, "high": {"non_finite": "inf"}, "level": 0.9}, "min_examples": null, "critical_batch_size": {"estimate": 2.0, "low": 1.5, "high": {"non_finite": "inf"}, "level": 0.9}, "half_efficiency_batch_size": null, "maximum_useful_batch_size": null, "sharpness": null, "residual_log_rms": null, "extrapolated": ["critical_batch_size"], "estimate": [18.0, 91.5, 1.2], "draws": [[18.0, 91.5, 1.2], [17.0, 99.0, 1.0]]}, "costs": [{"batch_size": 64, "steps": {"estimate": 2.0, "low": 1.5, "high": {"non_finite": "inf"}, "level": 0.9}, "time_per_step_s": {"estimate": 2.0, "low": 1.5, "high": {"non_finite": "inf"}, "level": 0.9}, "time_to_target_s": {"estimate": 2.0, "low": 1.5, "high": {"non_finite": "inf"}, "level": 0.9}, "device_hours": {"estimate": 2.0, "low": 1.5, "high": {"non_finite": "inf"}, "level": 0.9}, "money": null, "energy_kwh": {"estimate": 2.0, "low": 1.5, "high": {"non_finite": "inf"}, "level": 0.9}, "interpolated": true}], "answers": {"largest_feasible": 512, "fastest_per_example": 256, "critical": 91.5, "fastest_to_target": 256, "cheapest_to_target": 64}, "recommendation": {"objective": "TIME", "batch_size": 256, "time_to_target_s": {"estimate": 2.0, "low": 1.5, "high": {"non_finite": "inf"}, "level": 0.9}, "device_hours": {"estimate": 2.0, "low": 1.5, "high": {"non_finite": "inf"}, "level": 0.9}, "money": null, "stability": 0.8, "why": "It is fastest.", "caveats": ["Two sizes only."], "next": "advisor tune"}, "spent": {"examples": 100000, "steps": 2000, "trials": 12, "wall_s": 61.5}}');
CREATE TABLE advisor_alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT advisor_alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "advisor_alembic_version" VALUES('0001');
CREATE TABLE advisor_curve_point (
	study_id INTEGER NOT NULL, 
	trial INTEGER NOT NULL, 
	step INTEGER NOT NULL, 
	point JSON NOT NULL, 
	CONSTRAINT pk_advisor_curve_point PRIMARY KEY (study_id, trial, step), 
	CONSTRAINT fk_advisor_curve_point_study_id FOREIGN KEY(study_id, trial) REFERENCES advisor_trial (study_id, number)
);
INSERT INTO "advisor_curve_point" VALUES(1,0,10,'{"step": 10, "metrics": {"loss": 0.09090909090909091, "accuracy": 0.5}, "training_loss": 0.7, "train_s": 0.125, "evaluate_s": 0.25}');
INSERT INTO "advisor_curve_point" VALUES(1,0,20,'{"step": 20, "metrics": {"loss": 0.047619047619047616, "accuracy": 0.5}, "training_loss": 0.7, "train_s": 0.125, "evaluate_s": 0.25}');
INSERT INTO "advisor_curve_point" VALUES(1,1,10,'{"step": 10, "metrics": {"loss": 0.09090909090909091, "accuracy": 0.5}, "training_loss": 0.7, "train_s": 0.125, "evaluate_s": 0.25}');
INSERT INTO "advisor_curve_point" VALUES(1,1,20,'{"step": 20, "metrics": {"loss": 0.047619047619047616, "accuracy": 0.5}, "training_loss": 0.7, "train_s": 0.125, "evaluate_s": 0.25}');
CREATE TABLE advisor_description (
	id INTEGER NOT NULL, 
	workload TEXT NOT NULL, 
	saved_at TEXT NOT NULL, 
	document JSON NOT NULL, 
	CONSTRAINT pk_advisor_description PRIMARY KEY (id)
);
INSERT INTO "advisor_description" VALUES(1,'digits','2026-11-30T20:40:18.228154+00:00','{"name": "digits", "fingerprint": {"model": "m", "optimizer": "o", "loss": "l", "data_shape": "s", "data_content": "c", "target": "t", "configuration": "2 cpu", "versions": "keras 3"}, "target": {"metric": "accuracy", "at_least": 0.97, "at_most": null}, "optimizer": "nesterov", "optimizer_hyperparameters": {"learning_rate": 0.01, "momentum": 0.9}, "search_space": {"dropout": {"low": 0.0, "high": 0.5, "default": 0.0, "log": false, "log_one_minus": false, "kind": "Float"}, "momentum": {"low": 0.5, "high": 0.999, "default": null, "log": false, "log_one_minus": true, "kind": "Float"}, "units": {"low": 16, "high": 256, "default": 64, "log": true, "kind": "Int"}, "depth": {"low": 1, "high": 3, "default": null, "log": false, "kind": "Int"}, "activation": {"choices": ["relu", 1, 2.0, true], "default": "relu", "kind": "Categorical"}}, "examples": {"train": 1437, "validation": 360}, "metrics": ["loss", "accuracy"], "initial_metrics": {"loss": 2.4, "accuracy": 0.1}, "parameter_count": 4810, "configuration": {"workers": 1, "devices": 2, "device_kind": "cpu", "precision": "float32", "xla": false}, "environment": {"python": "3.11"}}');
CREATE TABLE advisor_measurement (
	run_id INTEGER NOT NULL, 
	batch_size INTEGER NOT NULL, 
	measurement JSON NOT NULL, 
	CONSTRAINT pk_advisor_measurement PRIMARY KEY (run_id, batch_size), 
	CONSTRAINT fk_advisor_measurement_run_id FOREIGN KEY(run_id) REFERENCES advisor_measurement_run (id)
);
INSERT INTO "advisor_measurement" VALUES(1,8,'{"batch_size": 8, "outcome": "OK", "detail": "", "warm_up_blocks": [{"steps": 5, "seconds": 9.0, "training_loss": 2.3}], "blocks": [{"steps": 20, "seconds": 0.25, "training_loss": 2.1}], "compile_s": 1.25, "peak_memory_bytes": 8589934592}');
INSERT INTO "advisor_measurement" VALUES(1,16,'{"batch_size": 16, "outcome": "OK", "detail": "", "warm_up_blocks": [{"steps": 5, "seconds": 9.0, "training_loss": 2.3}], "blocks": [{"steps": 20, "seconds": 0.25, "training_loss": 2.1}], "compile_s": 1.25, "peak_memory_bytes": 8589934592}');
CREATE TABLE advisor_measurement_run (
	id INTEGER NOT NULL, 
	workload TEXT NOT NULL, 
	timing TEXT NOT NULL, 
	measured_at TEXT NOT NULL, 
	fingerprint JSON NOT NULL, 
	configuration JSON NOT NULL, 
	environment JSON NOT NULL, 
	CONSTRAINT pk_advisor_measurement_run PRIMARY KEY (id)
);
INSERT INTO "advisor_measurement_run" VALUES(1,'digits','bec096c977c2060cc9c7362e07ed122b77093741310d191a26d7327c436681b1','2026-11-30T20:40:18.140336+00:00','{"model": "m", "optimizer": "o", "loss": "l", "data_shape": "s", "data_content": "c", "target": "t", "configuration": "2 cpu", "versions": "keras 3"}','{"workers": 1, "devices": 2, "device_kind": "cpu", "precision": "float32", "xla": false}','{"python": "3.11"}');
CREATE TABLE advisor_study (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	workload TEXT NOT NULL, 
	note TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	study JSON NOT NULL, 
	CONSTRAINT pk_advisor_study PRIMARY KEY (id), 
	CONSTRAINT uq_advisor_study_name UNIQUE (name)
);
INSERT INTO "advisor_study" VALUES(1,'digits/01234567/tune/b64','digits','found 0.97 at trial 0','2026-01-02T03:04:05+00:00','{"kind": "TUNE", "fingerprint": "0123456789abcdef", "batch_size": 64, "target": {"metric": "accuracy", "at_least": 0.97, "at_most": null}, "configuration": {"workers": 1, "devices": 2, "device_kind": "cpu", "precision": "float32", "xla": false}, "settings": {"max_train_steps": 5000, "ranges": {"learning_rate": [0.001, 1.0]}, "schedule": null}, "command": "advisor tune --batch 64", "revision": "8dc5261", "uncommitted_diff": "--- a\n+++ b\n"}');
CREATE TABLE advisor_trial (
	study_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	state TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	checkpoint TEXT, 
	owner TEXT NOT NULL, 
	"plan" JSON NOT NULL, 
	started_at TEXT NOT NULL, 
	finished_at TEXT, 
	CONSTRAINT pk_advisor_trial PRIMARY KEY (study_id, number), 
	CONSTRAINT fk_advisor_trial_study_id FOREIGN KEY(study_id) REFERENCES advisor_study (id)
);
INSERT INTO "advisor_trial" VALUES(1,0,'COMPLETE','ran all its steps','trial-0.npz','elsewhere:1/17/3.50','{"hyperparameters": {"learning_rate": 0.1, "units": 64, "activation": "relu", "bias": true}, "seed": 17, "purpose": "SELECT", "max_steps": 5000}','2026-11-30T20:40:18.182153+00:00','2026-11-30T20:40:18.218870+00:00');
INSERT INTO "advisor_trial" VALUES(1,1,'RUNNING','',NULL,'elsewhere:1/17/3.50','{"hyperparameters": {"learning_rate": 0.1, "units": 64, "activation": "relu", "bias": true}, "seed": 17, "purpose": "SELECT", "max_steps": 5000}','2026-11-30T20:40:18.207248+00:00',NULL);
CREATE INDEX ix_advisor_measurement_run_workload ON advisor_measurement_run (workload);
CREATE INDEX ix_advisor_study_workload ON advisor_study (workload);
CREATE INDEX ix_advisor_description_workload ON advisor_description (workload);
CREATE INDEX ix_advisor_advice_workload ON advisor_advice (workload);
COMMIT;
