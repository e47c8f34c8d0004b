# The numbers of docs/tutorials/from-scikit-learn.md that are scikit-learn's (1.2.1). In a folder with mass.csv of that page:
#   python3 scikit_learn.py
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, PredefinedSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

table = pd.read_csv("mass.csv")
mass = table["body_mass_g"]
folds = PredefinedSplit(table["fold"])
numbers = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm"]
categories = ["species", "island", "sex"]

columns = ColumnTransformer([
    ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), numbers),
    ("categories", make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), categories)])
model = make_pipeline(columns, Ridge(alpha=1))
for scoring, sign in [("neg_root_mean_squared_error", -1), ("r2", 1)]:
    scores = sign * cross_val_score(model, table, mass, cv=folds, scoring=scoring)
    print(f"{scoring}: {scores.mean():.4f} ± {scores.std(ddof=1):.4f}")

search = GridSearchCV(model, {"ridge__alpha": [0.1, 1, 10, 100]}, cv=folds, scoring="neg_root_mean_squared_error")
search.fit(table, mass)
print("grid search:", search.best_params_, -search.cv_results_["mean_test_score"])

new = pd.DataFrame({"species": ["Adelie", "Gentoo"], "island": ["Dream", "Biscoe"], "sex": ["female", "male"],
                    "bill_length_mm": [38.0, 49.0], "bill_depth_mm": [17.5, 15.5], "flipper_length_mm": [188, 220]})
print("predictions:", model.fit(table, mass).predict(new))

rises = {name: 0.0 for name in numbers + categories}
inputs = table[numbers + categories]
for training, validation in folds.split():
    model.fit(inputs.iloc[training], mass.iloc[training])
    result = permutation_importance(model, inputs.iloc[validation], mass.iloc[validation],
                                    scoring="neg_root_mean_squared_error", n_repeats=50, random_state=0)
    for name, rise in zip(inputs.columns, result.importances_mean):
        rises[name] += rise * len(validation) / len(table)
print("importances:", {name: round(rise, 1) for name, rise in rises.items()})

classifier = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-8, max_iter=10000))
for scoring, sign in [("neg_log_loss", -1), ("accuracy", 1)]:
    scores = sign * cross_val_score(classifier, table[numbers], table["species"], cv=folds, scoring=scoring)
    print(f"{scoring}: {scores.mean():.4f} ± {scores.std(ddof=1):.4f}")
print("probabilities:", classifier.fit(table[numbers], table["species"]).predict_proba(new[numbers]))
