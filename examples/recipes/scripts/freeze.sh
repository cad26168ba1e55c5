# On Friday, whoever is on duty:
holdfast hold deploy/prod --for 60h --reason "no releases before Monday"

# A release that is tried all the same ends with status 75, and says until when and why:
holdfast run -n deploy/prod -- ./deploy.sh

# One that cannot wait: end the freeze, or take the lock away from whoever is not there.
holdfast release deploy/prod || holdfast break deploy/prod --reason "hotfix 1234"
